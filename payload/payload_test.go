package payload_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

func key(t testing.TB, id string) payload.Key {
	t.Helper()
	k, err := payload.NewKey(id, bytes.Repeat([]byte(id)[:1], 32))
	require.NoError(t, err)
	return k
}

// memory is a store.
type memory map[string][]byte

func (m memory) Put(_ context.Context, key string, body []byte) error {
	m[key] = bytes.Clone(body)
	return nil
}

func (m memory) Get(_ context.Context, key string, limit int) ([]byte, error) {
	body, ok := m[key]
	if !ok || len(body) > limit {
		return nil, errors.New("none")
	}
	return body, nil
}

func (m memory) Delete(_ context.Context, key string) error {
	delete(m, key)
	return nil
}

func full(t testing.TB, store payload.Store) *payload.Chain {
	t.Helper()
	return &payload.Chain{Codecs: []payload.Codec{
		payload.Compress(100), payload.Encrypt(key(t, "new"), key(t, "old")), payload.ClaimCheck(store, 4000),
	}}
}

func outgoing(kind wakebelltype.OutgoingKind, body []byte) *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{Kind: kind, Topic: "invoices", ID: "inv-42", Body: body, ContentType: "application/json"}
}

// encode returns what a chain stores.
func encode(t testing.TB, c *payload.Chain, o *wakebelltype.Outgoing) payload.Encoded {
	t.Helper()
	require.NoError(t, c.Encode(func(context.Context, []*wakebelltype.Outgoing) error { return nil })(t.Context(), []*wakebelltype.Outgoing{o}))
	e := payload.Encoded{Topic: o.Topic, ID: o.ID, Headers: o.Headers, Body: o.Body, ContentType: o.ContentType}
	if o.Kind == wakebelltype.OutgoingRecurring {
		e.ID = firing.RunID(o.ID, time.Unix(1_700_000_000, 0))
		e.Headers = append(e.Headers, wakebelltype.Header{Key: firing.HeaderSchedule, Value: o.ID})
	}
	if o.Kind == wakebelltype.OutgoingMessage {
		e.Kind, e.ID, e.Headers = o.Kind, "a message", nil // as of a dead letter
	}
	return e
}

var kinds = []wakebelltype.OutgoingKind{
	wakebelltype.OutgoingTimer, wakebelltype.OutgoingMessage, wakebelltype.OutgoingRecurring, wakebelltype.OutgoingReminder,
}

func noise(n int) []byte {
	body := make([]byte, n)
	_, _ = rand.Read(body)
	return body
}

func TestBodyOfAnySizeAndKindIsDecodedAsItWas(t *testing.T) {
	t.Parallel()
	c := full(t, memory{}).WithLimit(1 << 20)
	for _, kind := range kinds {
		for _, body := range [][]byte{nil, {}, []byte("x"), []byte(strings.Repeat("text", 100)), noise(3000), noise(8000), noise(1 << 20), make([]byte, 1<<20)} {
			name := fmt.Sprint(kind, " ", len(body))
			o := outgoing(kind, bytes.Clone(body))
			o.SetHeader("tenant", "a")
			e := encode(t, c, o)
			require.True(t, payload.Marked(e.Headers, e.Body), name)
			require.Contains(t, payload.Description(e.Headers, e.Body), "encrypted with key new", name)
			if len(body) > 100 {
				require.NotContains(t, string(e.Body), string(body[:100]), name)
			}
			d, err := c.Decode(t.Context(), e)
			require.NoError(t, err, name)
			require.True(t, bytes.Equal(body, d.Body), name)
			require.NotContains(t, fmt.Sprint(d.Headers), payload.Header, name)
			if kind != wakebelltype.OutgoingMessage {
				require.Equal(t, "application/json", d.ContentType, name)
				require.Equal(t, payload.ContentType, e.ContentType, name)
				require.Equal(t, wakebelltype.Header{Key: "tenant", Value: "a"}, d.Headers[0], name)
			}
		}
	}
}

func TestBodyAboveLimitIsRefused(t *testing.T) {
	t.Parallel()
	c := full(t, memory{}).WithLimit(1000)
	err := c.Encode(nil)(t.Context(), []*wakebelltype.Outgoing{outgoing(wakebelltype.OutgoingTimer, make([]byte, 1001))})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.ErrorContains(t, err, "1001 bytes before it is encoded, the limit is 1000")
	for name, codec := range map[string]payload.Codec{
		"bomb": payload.Compress(1), "encrypted": payload.Encrypt(key(t, "new")), "claim": payload.ClaimCheck(memory{}, 0),
	} {
		larger := &payload.Chain{Codecs: []payload.Codec{codec}, Limit: 8 << 20}
		_, err = larger.WithLimit(1).Decode(t.Context(), encode(t, larger, outgoing(wakebelltype.OutgoingTimer, make([]byte, 8<<20))))
		require.NoError(t, err, name)
		e := encode(t, larger, outgoing(wakebelltype.OutgoingTimer, make([]byte, 8<<20)))
		larger.Limit = 1000
		_, err = larger.Decode(t.Context(), e)
		require.ErrorIs(t, err, payload.ErrCorrupt, name)
	}
}

func TestBombIsNotInflated(t *testing.T) {
	t.Parallel()
	c := &payload.Chain{Codecs: []payload.Codec{payload.Compress(1)}, Limit: 64 << 20}
	e := encode(t, c, outgoing(wakebelltype.OutgoingTimer, make([]byte, 64<<20)))
	e.Headers[0].Value = strings.Replace(e.Headers[0].Value, fmt.Sprint("size=", 64<<20), "size=5000", 1) // a lie
	c.Limit = 10_000
	_, err := c.Decode(t.Context(), e)
	require.ErrorIs(t, err, payload.ErrCorrupt)
}

func TestBodiesThatWereMovedOrChangedAreCorrupt(t *testing.T) {
	t.Parallel()
	c := &payload.Chain{Codecs: []payload.Codec{payload.Compress(10), payload.Encrypt(key(t, "new"))}}
	body := []byte(strings.Repeat("pay 100 to Ada; ", 20))
	for _, kind := range kinds {
		moved := encode(t, c, outgoing(kind, body))
		moved.Topic = "others"
		_, err := c.Decode(t.Context(), moved)
		require.ErrorIs(t, err, payload.ErrCorrupt, "another topic: %s", kind)
		for i := range encode(t, c, outgoing(kind, body)).Body {
			changed := encode(t, c, outgoing(kind, body))
			changed.Body[i] ^= 1
			d, err := c.Decode(t.Context(), changed)
			if err == nil { // the change is in the magic: it is a body without a frame
				require.Equal(t, wakebelltype.OutgoingMessage, kind)
				require.Equal(t, changed.Body, d.Body)
				continue
			}
			require.True(t, errors.Is(err, payload.ErrCorrupt) || errors.Is(err, payload.ErrUnknownKey) || errors.Is(err, payload.ErrUnknownCodec), "%s: byte %d: %v", kind, i, err)
		}
	}
	for what, change := range map[string]func(*payload.Encoded){
		"another id":         func(e *payload.Encoded) { e.ID = "inv-43" },
		"another type":       func(e *payload.Encoded) { remark(e, "json", "xml") },
		"another kind":       func(e *payload.Encoded) { remark(e, "for=timer", "for=reminder") },
		"without gzip":       func(e *payload.Encoded) { remark(e, " gzip;size=320", "") },
		"truncated":          func(e *payload.Encoded) { e.Body = e.Body[:len(e.Body)-1] },
		"shorter than a tag": func(e *payload.Encoded) { e.Body = e.Body[:20] },
		"empty":              func(e *payload.Encoded) { e.Body = nil },
		"longer":             func(e *payload.Encoded) { e.Body = append(e.Body, 0) },
		"no mark":            func(e *payload.Encoded) { e.Headers[0].Value = "" },
		"unsorted mark": func(e *payload.Encoded) {
			remark(e, "1;for=timer;type=application%2Fjson", "1;type=application%2Fjson;for=timer")
		},
		"huge mark": func(e *payload.Encoded) { e.Headers[0].Value += strings.Repeat(" gzip;size=1", 4000) },
	} {
		e := encode(t, c, outgoing(wakebelltype.OutgoingTimer, body))
		change(&e)
		_, err := c.Decode(t.Context(), e)
		require.ErrorIs(t, err, payload.ErrCorrupt, what)
	}
}

func TestKeysAndCodecsThatAreMissingCanBeDeployedLater(t *testing.T) {
	t.Parallel()
	written := &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(key(t, "new"))}}
	e := encode(t, written, outgoing(wakebelltype.OutgoingTimer, []byte("{}")))
	_, err := (&payload.Chain{Codecs: []payload.Codec{payload.Encrypt(key(t, "old"))}}).Decode(t.Context(), e)
	require.ErrorIs(t, err, payload.ErrUnknownKey)
	require.NotErrorIs(t, err, payload.ErrCorrupt)
	require.EqualError(t, err, `codec aes-256-gcm: unknown key "new": add it to the keys of Encrypt`)
	_, err = (&payload.Chain{Codecs: []payload.Codec{payload.Compress(1)}}).Decode(t.Context(), e)
	require.ErrorIs(t, err, payload.ErrUnknownCodec)
	d, err := (&payload.Chain{Topics: map[string][]payload.Codec{"others": {payload.Encrypt(key(t, "old"), key(t, "new"))}}}).Decode(t.Context(), e)
	require.NoError(t, err, "of another topic")
	require.Equal(t, "{}", string(d.Body))
	e.Headers[0].Value = "2;for=timer new"
	_, err = written.Decode(t.Context(), e)
	require.ErrorIs(t, err, payload.ErrUnknownCodec)
}

func TestPlainBodiesAreReadUnlessEncryptionIsRequired(t *testing.T) {
	t.Parallel()
	c := full(t, memory{})
	plain := payload.Encoded{Topic: "invoices", ID: "1", Body: []byte("{}"), ContentType: "application/json"}
	d, err := c.Decode(t.Context(), plain)
	require.NoError(t, err)
	require.Equal(t, payload.Decoded{Body: plain.Body, ContentType: plain.ContentType}, d)
	c.RequireEncryption = true
	_, err = c.Decode(t.Context(), plain)
	require.ErrorIs(t, err, payload.ErrCorrupt)
	c.Topics = map[string][]payload.Codec{"public": {}}
	plain.Topic = "public"
	_, err = c.Decode(t.Context(), plain)
	require.NoError(t, err)
	o := outgoing(wakebelltype.OutgoingTimer, []byte("{}"))
	o.Topic = "public"
	require.False(t, payload.Marked(encode(t, c, o).Headers, nil))
}

func TestEncodedBodyIsNotEncodedAgain(t *testing.T) {
	t.Parallel()
	c := full(t, memory{})
	o := outgoing(wakebelltype.OutgoingTimer, []byte("{}"))
	once := encode(t, c, o)
	require.Equal(t, once, encode(t, c, o))
}

// A body that looks like an encoded one is framed, so that it is delivered as it was.
func TestMessageThatBeginsLikeFrameIsFramed(t *testing.T) {
	t.Parallel()
	c := &payload.Chain{Codecs: []payload.Codec{payload.Compress(1 << 10)}}
	compressed := encode(t, c, outgoing(wakebelltype.OutgoingMessage, make([]byte, 2000)))
	again := encode(t, c, outgoing(wakebelltype.OutgoingMessage, bytes.Clone(compressed.Body)))
	d, err := c.Decode(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, compressed.Body, d.Body)
}

func TestClaimedBodyIsDeletedOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		store := memory{}
		c := full(t, store)
		e := encode(t, c, outgoing(kind, noise(5000)))
		if kind == wakebelltype.OutgoingRecurring { // all runs share it
			require.Empty(t, store)
			continue
		}
		require.Len(t, store, 1)
		require.Contains(t, payload.Description(e.Headers, e.Body), "5044 bytes in the store as ", kind)
		d, err := c.Decode(t.Context(), e)
		require.NoError(t, err)
		require.True(t, d.InStore, kind)
		require.NoError(t, d.Discard(t.Context()))
		require.Empty(t, store, kind)
	}
	store := memory{}
	c := &payload.Chain{Codecs: []payload.Codec{payload.ClaimCheck(store, 0)}}
	e := encode(t, c, outgoing(wakebelltype.OutgoingTimer, []byte("one")))
	for name := range store {
		store[name] = []byte("two")
	}
	_, err := c.Decode(t.Context(), e)
	require.ErrorIs(t, err, payload.ErrCorrupt)
	clear(store)
	_, err = c.Decode(t.Context(), e)
	require.NotErrorIs(t, err, payload.ErrCorrupt)
	require.ErrorContains(t, err, "none")
}

func TestInvalidChainNamesItsMistakes(t *testing.T) {
	t.Parallel()
	require.NoError(t, (*payload.Chain)(nil).Validate())
	require.NoError(t, full(t, memory{}).Validate())
	k := key(t, "k")
	err := (&payload.Chain{
		Codecs: []payload.Codec{nil, payload.Compress(0), payload.Encrypt(), payload.ClaimCheck(nil, -1)}, Limit: -1,
		Topics: map[string][]payload.Codec{"t": {payload.Encrypt(k, k), payload.Encrypt(payload.Key{})}},
	}).Validate()
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	for _, part := range []string{
		"number 0 is nil", "Compress: 0 bytes", "Encrypt: no keys", "nil store", "Limit: -1", "key k is listed twice", "codec aes-256-gcm is listed twice", "key 0 is zero",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestKeysAreReadFromFileAndNeverPrinted(t *testing.T) {
	t.Parallel()
	keys, err := payload.ReadKeys(strings.NewReader("# ours\nk2 a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n\nk1 b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb28=\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"k2", "k1"}, []string{keys[0].ID(), keys[1].ID()})
	require.Equal(t, "[key k2 key k1] key k2", fmt.Sprintf("%v %+v", keys, keys[0]))
	require.Equal(t, "key k2 key k2", fmt.Sprintf("%#v %x", keys[0], keys[0]))
	for _, text := range []string{"", "k1", "k1 a b", "k1 ???", "k1 c2hvcnQ=", "k/1 a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="} {
		_, err := payload.ReadKeys(strings.NewReader(text))
		require.ErrorIs(t, err, wakebelltype.ErrInvalid, text)
		require.NotContains(t, err.Error(), "a2tr")
	}
}

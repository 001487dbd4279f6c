package payload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A body is decoded only where it was stored: not that of a message as a timer, nor that
// of a schedule as a timer that is no run of it, although topic and queue have one name.
func TestBodiesAreBoundToTheirKind(t *testing.T) {
	t.Parallel()
	c := full(t, memory{})
	c.RequireEncryption = true
	message := encode(t, c, outgoing(wakebelltype.OutgoingMessage, []byte("secret")))
	asTimer := message
	asTimer.Kind = wakebelltype.OutgoingTimer
	timer := encode(t, c, outgoing(wakebelltype.OutgoingTimer, []byte("secret")))
	asMessage := timer
	asMessage.Kind = wakebelltype.OutgoingMessage
	asSchedule := timer
	asSchedule.Kind = wakebelltype.OutgoingRecurring
	run := encode(t, c, outgoing(wakebelltype.OutgoingRecurring, []byte("secret")))
	otherTimer, otherRun := run, run
	otherTimer.ID = "another timer"
	otherRun.ID = "inv-43" + strings.TrimPrefix(run.ID, "inv-42")
	marked := message
	marked.Kind, marked.Headers = wakebelltype.OutgoingTimer, []wakebelltype.Header{{Key: payload.Header, Value: "1;for=message"}}
	for name, e := range map[string]payload.Encoded{
		"message as timer": asTimer, "timer as message": asMessage, "timer as schedule": asSchedule, "schedule as timer": otherTimer,
		"run of another schedule": otherRun, "mark of a message": marked,
	} {
		_, err := c.Decode(t.Context(), e)
		require.ErrorIs(t, err, payload.ErrCorrupt, name)
	}
	for _, e := range []payload.Encoded{message, timer, run} {
		_, err := c.Decode(t.Context(), e)
		require.NoError(t, err)
	}
	require.Contains(t, run.Headers, wakebelltype.Header{Key: firing.HeaderSchedule, Value: "inv-42"})
}

// The plain body of a timer may begin like the frame of a message.
func TestTimerThatBeginsLikeFrameIsNotChanged(t *testing.T) {
	t.Parallel()
	body := encode(t, full(t, memory{}), outgoing(wakebelltype.OutgoingMessage, []byte("x"))).Body
	d, err := full(t, memory{}).Decode(t.Context(), payload.Encoded{Topic: "invoices", ID: "inv-42", Body: body})
	require.NoError(t, err)
	require.Equal(t, body, d.Body)
}

// The headers of a stored body, used for another one, do not leave that one plain.
func TestStaleMarkIsReplaced(t *testing.T) {
	t.Parallel()
	c := full(t, memory{})
	for _, kind := range kinds {
		old := outgoing(kind, []byte("before"))
		encode(t, c, old)
		changed := outgoing(kind, []byte("secret"))
		changed.Headers = old.Headers
		e := encode(t, c, changed)
		require.NotContains(t, string(e.Body), "secret", kind)
		d, err := c.Decode(t.Context(), e)
		require.NoError(t, err, kind)
		require.Equal(t, "secret", string(d.Body), kind)
	}
}

// What is before ClaimCheck alone reaches its store encrypted.
func TestClaimCheckIsLastCodec(t *testing.T) {
	t.Parallel()
	encrypt, claim := payload.Encrypt(key(t, "k")), payload.ClaimCheck(memory{}, 10)
	require.ErrorIs(t, (&payload.Chain{Codecs: []payload.Codec{claim, encrypt}, RequireEncryption: true}).Validate(), wakebelltype.ErrInvalid)
	require.ErrorIs(t, (&payload.Chain{Topics: map[string][]payload.Codec{"t": {claim, payload.Compress(1)}}}).Validate(), wakebelltype.ErrInvalid)
	require.NoError(t, (&payload.Chain{Codecs: []payload.Codec{encrypt, claim}}).Validate())
}

// A body that is encrypted belongs to its topic; one that is compressed may be moved.
func TestEncryptedBodiesAreBound(t *testing.T) {
	t.Parallel()
	compressed := &payload.Chain{Codecs: []payload.Codec{payload.Compress(1)}}
	for _, kind := range kinds {
		e := encode(t, full(t, memory{}), outgoing(kind, make([]byte, 200)))
		require.True(t, payload.Bound(e.Headers, e.Body), kind)
		e = encode(t, compressed, outgoing(kind, make([]byte, 200)))
		require.False(t, payload.Bound(e.Headers, e.Body), kind)
	}
}

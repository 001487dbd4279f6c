package schedule_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

func encrypting(t *testing.T) *payload.Chain {
	t.Helper()
	return &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(payloadKey(t, "k1"))}, RequireEncryption: true}
}

// An import does not store bodies that could not be decrypted in the other topic.
func TestImportRefusesEncryptedBodiesForAnotherTopic(t *testing.T) {
	t.Parallel()
	from, to := wakebell.NewTopic[string](redistest.Name(t)), redistest.Name(t)+"-2"
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{Payloads: encrypting(t)})
	_, err := c.Schedule(t.Context(), from.Draft("secret", wakebell.ID("a"), wakebell.In(time.Hour)))
	require.NoError(t, err)
	var file bytes.Buffer
	for _, err := range c.ExportTopic(t.Context(), from.Name(), &file) {
		require.NoError(t, err)
	}
	for _, dry := range []bool{true, false} {
		var last error
		for _, err := range c.ImportTopic(t.Context(), bytes.NewReader(file.Bytes()), wakebelltype.ImportOptions{Topic: to, DryRun: dry}) {
			last = err
		}
		require.ErrorIs(t, last, wakebell.ErrInvalid)
		require.ErrorContains(t, last, "encrypted for the exported topic")
	}
	_, _, err = c.Get(t.Context(), to, "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	for _, err := range c.ImportTopic(t.Context(), bytes.NewReader(file.Bytes()), wakebelltype.ImportOptions{}) {
		require.NoError(t, err, "into the same topic")
	}
}

// A schedule that is read, changed and stored again is encrypted, and its stored body is
// not kept for another topic.
func TestChangedScheduleIsEncryptedAgain(t *testing.T) {
	t.Parallel()
	rdb, name := redistest.Shared(t), redistest.Name(t)
	keys := wakebelltype.Keys{Beat: name + ":"}
	topic := wakebell.NewTopic[string](name)
	encrypted := stacktest.Client(t, rdb, connection.Config{Keys: keys, Payloads: encrypting(t)}).Schedules()
	plain := stacktest.Client(t, rdb, connection.Config{Keys: keys}).Schedules() // as the dashboard without keys
	require.NoError(t, encrypted.Put(t.Context(), topic.Recurring("s", recurring.Rule{Every: time.Hour}, "secret 1")))
	stored := func() recur.Ours {
		dump, err := plain.Export(t.Context(), "s")
		require.NoError(t, err)
		ours, err := recur.ReadOurs(dump.Wakebell)
		require.NoError(t, err)
		return ours
	}
	require.Contains(t, stored().Headers, payload.Header)

	state, err := encrypted.Get(t.Context(), "s")
	require.NoError(t, err)
	state.Rule.Every = time.Hour
	require.NoError(t, encrypted.Put(t.Context(), topic.Recurring("s", state.Rule, "secret 2")))
	require.NotContains(t, string(stored().Body), "secret")
	require.Equal(t, payload.ContentType, stored().ContentType)

	kept := topic.Recurring("s", state.Rule, "")
	kept.Body, kept.ContentType, kept.Rule.Headers = stored().Body, stored().ContentType, map[string]string{payload.Header: stored().Headers[payload.Header]}
	kept.Rule.Every = 2 * time.Hour
	require.NoError(t, plain.Put(t.Context(), kept), "its topic is the same")
	kept.Topic += "-2"
	for _, schedules := range []*recurring.Schedules{plain, encrypted} {
		err = schedules.Put(t.Context(), kept)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "encrypted for the topic")
	}
	require.NoError(t, plain.Put(t.Context(), topic.Recurring("s", state.Rule, "open")))
	require.NotContains(t, stored().Headers, payload.Header, "a plain body has no mark")
}

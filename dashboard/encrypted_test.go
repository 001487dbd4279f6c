package dashboard_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/recurring"
)

// An edit without the keys of the encryption keeps the encrypted body, does not move it to
// a topic where it could not be decrypted, and stores another body as what it is.
func TestEncryptedScheduleIsEdited(t *testing.T) {
	t.Parallel()
	s := open(t)
	key, err := payload.NewKey("k", make([]byte, 32))
	require.NoError(t, err)
	encrypted, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{
		Prefix:   s.client.Prefix(),
		Keys:     s.keys(),
		Payloads: &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(key)}},
	}))
	require.NoError(t, err)
	require.NoError(t, encrypted.Schedules().Put(t.Context(), wakebell.NewTopic[string]("reports").Recurring("nightly", recurring.Rule{Every: time.Hour}, "secret")))
	stored := func() recur.Ours {
		dump, err := s.client.Schedules().Export(t.Context(), "nightly")
		require.NoError(t, err)
		ours, err := recur.ReadOurs(dump.Wakebell)
		require.NoError(t, err)
		return ours
	}
	before := stored()
	name := []string{"name", "nightly"}
	fields := []string{"name", "nightly", "topic", "reports", "kind", "interval", "rule", "2h", "misfire", "once", "overlap", "allow"}
	s.do("put-schedule", name, fields...)
	require.Equal(t, before.Body, stored().Body)
	require.Equal(t, before.Headers, stored().Headers)

	path := s.path("do/put-schedule", name...)
	_, csrf := s.question(path)
	moved := slices.Clone(fields)
	moved[3] = "others"
	refused := s.send(http.MethodPost, path, form(csrf, moved...))
	require.Contains(t, refused.body, "encrypted for the topic")
	require.Equal(t, before.Body, stored().Body)

	s.do("put-schedule", name, append(fields, "body", `"open"`)...)
	require.NotContains(t, stored().Headers, payload.Header, "it is not marked as encrypted")
	require.Contains(t, string(stored().Body), "open")
}

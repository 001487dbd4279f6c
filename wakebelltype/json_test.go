package wakebelltype_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

// TestJSON checks that values are marshalled with names and words, which programs
// may rely on, and are read back.
func TestJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	scheduled := wakebelltype.Scheduled{ID: "inv-42", Due: at, Outcome: wakebelltype.OutcomeKeptPending, Found: at}
	text, err := json.Marshal(scheduled)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"inv-42","due":"2026-11-22T09:00:00Z","outcome":"kept pending","found":"2026-11-22T09:00:00Z","replicas":0}`, string(text))
	var read wakebelltype.Scheduled
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, scheduled, read)

	text, err = json.Marshal(wakebelltype.Control{Paused: true, Settings: wakebelltype.Settings{LeaseTTL: time.Second}})
	require.NoError(t, err)
	require.Contains(t, string(text), `"paused":true,"paused_by":"","reason":"","settings":{"max_concurrent":0,"lease_ttl_ns":1000000000,`)
}

// word is an enumeration.
type word[T any] interface {
	*T
	encoding.TextUnmarshaler
}

func checkWords[T interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}, P word[T]](t *testing.T, first T, count int) {
	t.Helper()
	for i := range count {
		value := first + T(i) //nolint:gosec // few
		text, err := value.MarshalText()
		require.NoError(t, err)
		require.Equal(t, value.String(), string(text))
		require.NotEqual(t, "unknown", string(text))
		var read T
		require.NoError(t, P(&read).UnmarshalText(text))
		require.Equal(t, value, read)
	}
	beyond := first + T(count) //nolint:gosec // few
	require.Equal(t, "unknown", beyond.String())
	for _, text := range []string{"", "unknown", "no word"} {
		require.Error(t, P(new(T)).UnmarshalText([]byte(text)))
	}
}

func TestEnumerationsAreWords(t *testing.T) {
	t.Parallel()
	checkWords(t, wakebelltype.PolicyReplace, 4)
	checkWords(t, wakebelltype.OutcomeCreated, 8)
	checkWords(t, wakebelltype.PresenceAbsent, 3)
	checkWords(t, wakebelltype.RedriveSucceeded, 4)
	checkWords(t, wakebelltype.QueueRedriveSucceeded, 3)
}

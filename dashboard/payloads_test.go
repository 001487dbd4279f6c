package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/payload"
)

// TestEncodedPayloadsAreShownWithTheirKeys shows the same bodies on a dashboard with the
// keys and on one without.
func TestEncodedPayloadsAreShownWithTheirKeys(t *testing.T) {
	t.Parallel()
	key, err := payload.NewKey("k1", make([]byte, 32))
	require.NoError(t, err)
	chain := &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(key)}}
	for name, keys := range map[string]*payload.Chain{"keys": chain, "none": nil} {
		s := openOn(t, connection.Config{Payloads: keys})
		c, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{Prefix: s.client.Prefix(), Keys: s.keys(), Payloads: chain}))
		require.NoError(t, err)
		_, err = wakebell.NewTopic[string]("cards").Schedule(t.Context(), c, "pin=1234", wakebell.ID("c"), wakebell.In(time.Hour))
		require.NoError(t, err)
		page := s.get("timer", "topic", "cards", "id", "c")
		require.Contains(t, page, "encrypted with key k1, 52 bytes", name)
		if keys == nil {
			require.NotContains(t, page, "pin=1234")
		} else {
			require.Contains(t, page, "pin=1234")
		}
		require.Equal(t, http.StatusForbidden, s.send(http.MethodGet, s.path("do/schedule", "topic", "cards", "id", "c"), nil).status)
	}
}

// What the handler of a timer has reported is on its page, also after it has ended.
func TestReportOfTimerIsShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	require.NotContains(t, s.get("timer", "topic", "invoices", "id", "inv-1"), "Reported")
	key := "timers_results:" + s.client.Prefix() + "invoices:inv-1"
	require.NoError(t, redistest.Shared(t).HSet(t.Context(), key,
		"p", "1767225600 1 0.375 page <b>3</b>", "r", `1767225600 2 1767225600 {"data":"forty-two","headers":{}}`).Err())
	page := s.get("timer", "topic", "invoices", "id", "inv-1")
	require.Contains(t, page, "37 %, page &lt;b&gt;3&lt;/b&gt;")
	require.Contains(t, page, "Of attempt 2")
	require.Contains(t, page, "forty-two")
	_, err := s.client.Cancel(t.Context(), "invoices", "inv-1")
	require.NoError(t, err)
	s.fresh()
	require.Contains(t, s.get("timer", "topic", "invoices", "id", "inv-1"), "forty-two")
}

// A timer whose payload is too large to be read has its page, is found, and can be cancelled.
func TestTimerThatIsTooLargeIsShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	redistest.PutTimer(t, redistest.Shared(t), s.client.Prefix()+"videos", "large", make([]byte, 16<<20+1), float64(time.Now().Add(time.Hour).Unix()))
	page := s.get("timer", "topic", "videos", "id", "large")
	require.Contains(t, page, "payload too large: it has 16777217 bytes, at most 16777216 are read")
	require.Contains(t, page, ">pending<")
	require.Contains(t, page, "Cancel …")
	require.NotContains(t, page, "Edit and schedule again")
	require.Equal(t, http.StatusRequestEntityTooLarge, s.send(http.MethodGet, s.path("do/schedule", "topic", "videos", "id", "large"), nil).status)
	found := s.send(http.MethodGet, s.path("search", "q", "videos large"), nil)
	require.Contains(t, found.header.Get("Location"), "id=large", found.body)
	_, next := s.do("cancel", []string{"topic", "videos", "id", "large"})
	require.Contains(t, next, "The timer is cancelled. It was pending.")
}

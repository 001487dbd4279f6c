package eventwire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestEventsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 1, 2, 3, 4, 5, 6000, time.UTC)
	events := []wakebelltype.Event{
		{Kind: wakebelltype.EventDelivered, Topic: "t", Node: "n", At: at, ID: "a", Attempt: 2, Lateness: time.Millisecond},
		{Kind: wakebelltype.EventRetried, Topic: "t", Node: "n", At: at, ID: "a", Attempt: 2, Took: time.Second, RetryIn: time.Minute, Text: "no"},
		{Kind: wakebelltype.EventNode, Topic: "t", Node: "n", State: &wakebelltype.NodeState{
			Version: "v1.2.3", Started: at, Role: "fallback", Breaker: "open", BreakerSince: at, BreakerUntil: at.Add(time.Minute),
			BreakerReason: "no route", Group: "mail", Weight: 9, Paused: true, Running: 3, Concurrency: 4, Prefetch: true,
			Restarts: 5, Outages: 6, ExpireAfter: time.Minute, Options: tuning.Defaults(),
		}},
	}
	text, err := Encode(events)
	require.NoError(t, err)
	require.Equal(t, events, Decode("t", string(text)))
}

// A node of an earlier version sends no state.
func TestNodeWithoutState(t *testing.T) {
	t.Parallel()
	require.Equal(t, []wakebelltype.Event{{Kind: wakebelltype.EventNode, Topic: "t", Node: "n"}}, Decode("t", `{"node":"n","events":[{"event":"node"}]}`))
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"node":"n","events":[{"event":"dead","at":1795246719123456,"id":"x","took":-1}]}`)
	f.Add(`{"events":[{"at":-9223372036854775808,"retry_in":9223372036854775807}]}`)
	f.Add(`{"events":[{"event":"node","state":{"started":-9223372036854775808,"breaker_until":9223372036854775807,"options":{"max_concurrent":1e18}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range Decode("t", text) {
			require.Equal(t, "t", e.Topic)
			if _, err := e.At.MarshalJSON(); err != nil {
				t.Fatal(err)
			}
			if e.State != nil {
				_, err := e.State.Started.MarshalJSON()
				require.NoError(t, err)
				_, err = e.State.BreakerUntil.MarshalJSON()
				require.NoError(t, err)
			}
		}
	})
}

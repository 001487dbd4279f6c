package topics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

func TestEventsAsText(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1795263600181).UTC()
	for want, e := range map[string]wakebelltype.Event{
		"-                         node        -  on h/1/w":       {Kind: wakebelltype.EventNode, Node: "h/1/w"},
		"-                         missed      -  7 events, on h": {Kind: wakebelltype.EventMissed, Node: "h", Missed: 7},
		`2026-11-21T12:20:00.181Z  delivered   a\n  attempt 2, 1.5s late, on h`: {
			Kind: wakebelltype.EventDelivered, At: at, ID: "a\n", Attempt: 2, Lateness: 1500 * time.Millisecond, Node: "h",
		},
		"2026-11-21T12:20:00.181Z  retried     a  attempt 1, took 20ms, again in 1s, on h: no": {
			Kind: wakebelltype.EventRetried, At: at, ID: "a", Attempt: 1, Took: 20 * time.Millisecond, RetryIn: time.Second, Node: "h", Text: "no",
		},
		"2026-11-21T12:20:00.181Z  cancelled   a  attempt 1, on h": {Kind: wakebelltype.EventCancelled, At: at, ID: "a", Attempt: 1, Node: "h"},
	} {
		require.Equal(t, want, eventText(e, ""))
	}
}

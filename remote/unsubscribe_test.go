package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// A subscriber that leaves while a handler goes on names its delivery: no other handler may run
// beside it. The node releases the others, and gives the next subscription all its credits.
func TestLeasesOfHandlersThatGoOnAreNotReleased(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
	n := serve(t, cfg)
	topic, first, c := n.topic.Name(), talk(t, n, secret), dial(t, n)
	for _, id := range []string{"a", "b"} {
		_, err := n.topic.Schedule(t.Context(), c, "x", wakebell.ID(id))
		require.NoError(t, err)
	}
	require.IsType(t, &messages.SubscribeResponse{}, first.ask(subscription(topic, 2)))
	held := map[string]*messages.Lease{}
	take := func(m any) {
		if leases, ok := m.(*messages.Leases); ok {
			for _, l := range leases.GetLeases() {
				held[l.GetId()] = l
			}
		}
	}
	for _, m := range first.others {
		take(m)
	}
	for len(held) < 2 {
		for _, m := range first.replies() {
			take(m)
		}
	}
	left := &messages.UnsubscribeRequest{Topic: topic, Subscriber: "s", Running: []uint64{held["a"].GetDelivery(), 1}}
	require.IsType(t, &messages.UnsubscribeResponse{}, first.ask(left))

	// The next one of this name has neither the lease nor fewer credits.
	handled := make(chan string, 10)
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(_ context.Context, l *messages.Lease) error {
		handled <- l.GetId()
		return nil
	})
	require.Equal(t, "b", receive(t, handled))
	first.say(&messages.Verdicts{Topic: topic, Subscriber: "s", Verdicts: []*messages.Verdict{
		{Id: "a", Kind: &messages.Verdict_Release{Release: held["a"].Release()}},
	}})
	require.IsType(t, &messages.GetTimerResponse{}, first.ask(&messages.GetTimerRequest{Topic: topic, Id: "a"}))
	first.end() // nor does the end of the session release it
	<-time.After(2 * time.Second)
	info, _, err := c.Get(t.Context(), topic, "a")
	require.NoError(t, err)
	require.Equal(t, wakebell.StateRunning, info.State)
	require.Equal(t, 1, info.Attempts)
	require.Empty(t, handled)
}

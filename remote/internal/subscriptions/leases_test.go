package subscriptions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func TestBatchOfLeasesCountsHeaders(t *testing.T) {
	t.Parallel()
	leases := func(l *messages.Lease) []*held { return slices.Repeat([]*held{{size: sizeOf(l)}}, 1000) }
	require.Equal(t, maxLeases, batch(leases(&messages.Lease{}), maxLeaseBytes))
	require.Equal(t, 1, batch(leases(&messages.Lease{Body: make([]byte, 64<<10)}), 32<<10))
	header := &messages.Lease{Headers: map[string]string{"h": strings.Repeat("x", 10<<10)}}
	require.Equal(t, 2, batch(leases(header), 24<<10))
	require.Zero(t, batch(nil, maxLeaseBytes))
}

// schedule adds a timer to "topic" that is due, and has it claimed.
func (s *stand) schedule(id, body string) {
	s.t.Helper()
	_, err := wakebell.NewTopic[string]("topic").Schedule(s.t.Context(), s.world.Client(), body, wakebell.ID(id))
	require.NoError(s.t, err)
	s.world.Advance(0)
}

// A timer that the poller claims as the last subscriber leaves is due again at once.
func TestLeaseAfterLastSubscriberIsReleasedAtOnce(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		in := s.inbox()
		in.subscribe("topic", 1)
		release := s.hold("topic")
		in.say(&messages.UnsubscribeRequest{Topic: "topic", Subscriber: "s"})
		s.schedule("id", "x")
		release()
		s.world.Advance(0)
		require.Empty(t, idsOf(in.took()))
		info, _, err := s.world.Client().Get(t.Context(), "topic", "id")
		require.NoError(t, err)
		require.Equal(t, wakebell.StatePending, info.State)
		require.Zero(t, info.Attempts)
	})
}

// A timer that fits into no frame becomes a dead letter, unless a caller of HTTP can take it. It does
// not hold up others while it waits for one.
func TestCallersOfHTTPTakeLeasesThatFitNoFrame(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		s.hubs.guard.Cfg.MaxMessage = 64 << 10
		large := strings.Repeat("x", 64<<10)
		dead := func() int64 {
			stats, err := s.world.Client().Stats(t.Context(), "topic")
			require.NoError(t, err)
			return stats.Dead
		}
		caller, linked := s.inbox(), s.inbox()
		pull := Pull{&messages.SubscribeRequest{Topic: "topic", Subscriber: "caller", Credits: 1}}
		caller.say(pull)
		s.schedule("alone", large)
		got := caller.took()
		require.Equal(t, []string{"alone"}, idsOf(got))
		alone := got[len(got)-1].(*messages.Leases).GetLeases()[0]
		caller.say(Settle{Topic: "topic", Subscriber: "caller", Delivery: alone.GetDelivery(), Verdict: alone.Ack()})
		caller.say(Detach{Topic: "topic", Subscriber: "caller"})
		caller.took()

		linked.subscribe("topic", 10)
		s.schedule("waits", large)
		s.schedule("small", "x")
		require.Equal(t, []string{"small"}, idsOf(linked.took()))
		caller.say(pull)
		s.world.Advance(0)
		require.Equal(t, []string{"waits"}, idsOf(caller.took()))
		require.Zero(t, dead())
		caller.say(Detach{Topic: "topic", Subscriber: "caller"})
		caller.took()

		s.world.Advance(time.Minute) // the caller holds nothing any more
		linked.took()
		require.EqualValues(t, 1, dead(), "no subscriber can take what it has left")
		s.schedule("rejected", large)
		require.Empty(t, idsOf(linked.took()))
		require.EqualValues(t, 2, dead())
	})
}

package subscriptions

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/peer"
)

// fixture is a hub without actors.
type fixture struct{ *hub }

func newFixture() fixture {
	guard := &peer.Guard{Cfg: peer.Settings{MaxMessage: 8 << 20}, Leases: limits.NewBudget(limits.Leases), WaitingLeases: limits.NewBudget(limits.WaitingLeases)}
	return fixture{newHub(newHubs(nil, guard), "topic", &tuning{have: 1, busy: true}, &arrivals{})}
}

// with adds a subscription with credits, that holds leases of a byte.
func (f fixture) with(t *testing.T, owner, name string, credits, leases int) *subscriber {
	t.Helper()
	of := limits.Party{Principal: owner}
	require.NoError(t, f.enter(of))
	s := f.join(subscriberKey{owner: owner, name: name}, of)
	s.credits = credits
	f.remember(s, "")
	f.use(s, leases)
	require.NoError(t, s.memory.Take(leases))
	return s
}

// departs ends a subscription whose handlers all go on.
func (f fixture) departs(s *subscriber) {
	f.departed[s] = struct{}{}
	f.drop(s)
	s.key.ended = 1
}

// The leases of a subscription that has ended count towards those of its principal until they
// expire, and add to the credits of its next subscription.
func TestLeasesOfEndedSubscriptionCountUntilTheyExpire(t *testing.T) {
	t.Parallel()
	f := newFixture()
	most := half(maxCredits, 0)
	s := f.with(t, "a", "s", most, most-1)
	f.departs(s)
	next := f.with(t, "a", "s", most, 0)
	require.True(t, f.room(next), "one more")
	f.use(next, 1)
	require.False(t, f.room(next), "the principal holds half of all")
	require.Equal(t, most, f.capacity())
	f.use(s, 1-most)
	f.forget(s)
	require.Empty(t, f.departed)
	require.True(t, f.room(next))

	f = newFixture()
	f.departs(f.with(t, "a", "s", 10, 3))
	require.Equal(t, 3, f.capacity())
	require.Zero(t, f.holdings["a"].subscribers)
	require.True(t, f.fits(subscriberKey{owner: "a", name: "s"}, maxCredits))
	next = f.with(t, "a", "s", 10, 0)
	next.to = actor.NewPID("", "s")
	require.Equal(t, 13, f.capacity(), "the next one has all its credits")
}

// A principal at the bound of its subscriptions comes back to a topic that its leases keep open.
func TestSubscriptionTakesOverChargeOfLastOne(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.subscriptions = limits.NewBudget(limits.Bound{Name: "subscriptions", Principal: 1})
	f.departs(f.with(t, "a", "s", 10, 1))
	s := f.with(t, "a", "s", 10, 0)
	require.Error(t, f.subscriptions.Take(limits.Party{Principal: "a"}, 1), "it is charged")
	f.departs(s)
	f.with(t, "b", "s", 10, 0)
	require.NoError(t, f.subscriptions.Take(limits.Party{Principal: "a"}, 1), "another one pays for the topic")
}

// A hub that stops, or has crashed, gives back the memory of all leases, and all charges.
func TestHubThatStopsHoldsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.departs(f.with(t, "a", "departed", 10, 3))
	f.with(t, "a", "s", 10, 4)
	probe := f.guard.Leases.Holder(limits.Party{})
	_, before := probe.Left()
	f.Stop()
	_, after := probe.Left()
	require.Equal(t, 7, after-before)
	_, left := f.hubs.subscriptions.Holder(limits.Party{}).Left()
	require.Equal(t, limits.Subscriptions.Host, left)
}

package subscriptions

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// as subscribes for an instance, and returns the leases that it holds.
func (i *inbox) as(instance string) []*messages.Lease {
	i.t.Helper()
	i.say(&messages.SubscribeRequest{Topic: "topic", Subscriber: "s", Credits: 2, Clock: durationpb.New(0), Instance: instance})
	got := i.took()
	require.Len(i.t, got, 1)
	require.IsType(i.t, &messages.SubscribeResponse{}, got[0])
	return got[0].(*messages.SubscribeResponse).GetHeld()
}

// given schedules a timer, and returns its lease.
func (i *inbox) given(id string) *messages.Lease {
	i.t.Helper()
	_, err := wakebell.NewTopic[string]("topic").Schedule(i.t.Context(), i.world.Client(), "x", wakebell.ID(id))
	require.NoError(i.t, err)
	i.world.Advance(0)
	got := i.took()
	require.Equal(i.t, []string{id}, idsOf(got))
	return got[0].(*messages.Leases).GetLeases()[0]
}

func (i *inbox) extend(l *messages.Lease) {
	i.say(&messages.Verdicts{Topic: "topic", Subscriber: "s", Clock: durationpb.New(time.Hour), Verdicts: []*messages.Verdict{
		{Id: l.GetId(), Kind: &messages.Verdict_Extend{Extend: &messages.Extend{Delivery: l.GetDelivery()}}},
	}})
	i.world.Advance(time.Second)
}

func (i *inbox) ack(l *messages.Lease) {
	i.say(&messages.Verdicts{Topic: "topic", Subscriber: "s", Verdicts: []*messages.Verdict{{Id: l.GetId(), Kind: &messages.Verdict_Ack{Ack: l.Ack()}}}})
	i.world.Advance(time.Second)
}

// A process that another one of its name has replaced keeps its leases: its handlers may run. It
// settles and extends them, and its end does not end the subscription of the other one.
func TestReplacedProcessKeepsItsLeases(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		first, second := s.inbox(), s.inbox()
		require.Empty(t, first.as("first"))
		settled, extended, expires := first.given("settled"), first.given("extended"), time.Now().Add(30*time.Second)
		require.Empty(t, second.as("second"), "it would release them")
		first.ack(settled)
		s.world.Advance(20 * time.Second)
		first.extend(extended)
		got := first.took()
		require.Len(t, got, 1)
		require.GreaterOrEqual(t, got[0].(*messages.LeasesExtended).GetClock().AsDuration(), time.Hour, "by the clock of the first")
		s.world.Advance(time.Until(expires) + 5*time.Second)
		require.Empty(t, second.took())

		first.say(&messages.UnsubscribeRequest{Topic: "topic", Subscriber: "s", Running: []uint64{extended.GetDelivery()}})
		require.Len(t, first.took(), 1)
		second.given("next")
		require.Empty(t, second.took())
		s.world.Advance(20 * time.Second)
		require.Equal(t, []string{"extended"}, idsOf(second.took()), "it has expired")
		require.Empty(t, first.took())
	})
}

// A process that comes back has the leases from before another one replaced it, over any link.
func TestProcessThatComesBackHasItsLeases(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		first, second, back := s.inbox(), s.inbox(), s.inbox()
		require.Empty(t, first.as("first"))
		of := first.given("id")
		require.Empty(t, second.as("second"))
		held := back.as("first")
		require.Len(t, held, 1)
		require.Equal(t, of.GetDelivery(), held[0].GetDelivery())
		back.extend(of)
		require.Len(t, back.took(), 1)
		require.Empty(t, first.took())
	})
}

// What does not name its instance has the leases that it knows: it extends them over a new link.
func TestProcessWithoutInstanceExtendsItsLeases(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		first, back := s.inbox(), s.inbox()
		require.Empty(t, first.as(""))
		of := first.given("id")
		require.Empty(t, back.as(""))
		back.extend(of)
		require.Len(t, back.took(), 1)
		require.Empty(t, first.took())
		back.ack(of)
		s.world.Advance(time.Minute)
		require.Empty(t, back.took())
	})
}

// What is left of a subscription that was replaced ends with its session: a second later its leases
// are released.
func TestEndOfReplacedSessionReleasesItsLeases(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		first, second := s.inbox(), s.inbox()
		require.Empty(t, first.as("first"))
		first.given("id")
		require.Empty(t, second.as("second"))
		hub, there := s.root.ActorSystem().ProcessRegistry.GetLocal(s.topic["topic"].hub.GetId())
		require.True(t, there)
		hub.SendSystemMessage(s.topic["topic"].hub, &actor.Terminated{Who: first.self, Why: actor.TerminatedReason_Stopped})
		s.world.Advance(900 * time.Millisecond)
		require.Empty(t, second.took())
		s.world.Advance(200 * time.Millisecond)
		require.Equal(t, []string{"id"}, idsOf(second.took()))
	})
}

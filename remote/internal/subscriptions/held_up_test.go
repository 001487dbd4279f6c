package subscriptions

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/wakebelltest"
)

// stand is a router with its hubs, beside the node of a World.
type stand struct {
	*router
	t     *testing.T
	world *wakebelltest.World
	root  *actor.RootContext
	pid   *actor.PID
}

// withRouter runs a test with a stand, in virtual time.
func withRouter(t *testing.T, test func(t *testing.T, s *stand)) {
	t.Helper()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		system := w.Start(wakebell.Config{}).System()
		actors := system.ActorSystem()
		guard := peer.NewGuard(actors, peer.Settings{MaxMessage: 8 << 20, Logger: slog.New(slog.DiscardHandler), Metrics: metrics.New(metrics.Options{})})
		s := &stand{router: &router{hubs: newHubs(system, guard)}, t: t, world: w, root: actors.Root}
		s.pid = actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) { s.Receive(c) }))
		t.Cleanup(func() {
			require.NoError(t, actors.Root.StopFuture(s.pid).Wait())
			guard.Close()
			guard.Running.Wait()
		})
		test(t, s)
		<-time.After(time.Minute) // protoactor counts dead letters for five seconds
	})
}

// inbox is a process that keeps what it receives.
type inbox struct {
	*stand
	self *actor.PID
	got  []any
}

func (s *stand) inbox() *inbox {
	i := &inbox{stand: s}
	i.self, _ = s.root.ActorSystem().ProcessRegistry.Add(i, "inbox"+s.root.ActorSystem().ProcessRegistry.NextId())
	return i
}

func (i *inbox) SendUserMessage(_ *actor.PID, m any) {
	i.got = append(i.got, actor.UnwrapEnvelopeMessage(m))
}
func (i *inbox) SendSystemMessage(_ *actor.PID, _ any) {}
func (i *inbox) Stop(*actor.PID)                       {}

// took returns what has come since the last call.
func (i *inbox) took() []any {
	synctest.Wait()
	got := i.got
	i.got = nil
	return got
}

// say sends a message to the router.
func (i *inbox) say(m any) {
	i.root.RequestWithCustomSender(i.pid, m, i.self)
}

func (i *inbox) subscribe(topic string, credits uint32) {
	i.t.Helper()
	i.say(&messages.SubscribeRequest{Topic: topic, Subscriber: "s", Credits: credits, Clock: durationpb.New(0)})
	got := i.took()
	require.Len(i.t, got, 1)
	require.IsType(i.t, &messages.SubscribeResponse{}, got[0])
}

// hold has the hub of a topic take no message until the returned function is called.
func (s *stand) hold(topic string) (release func()) {
	system := s.root.ActorSystem()
	hub := s.topic[topic].hub
	mailbox, there := system.ProcessRegistry.GetLocal(hub.GetId())
	require.True(s.t, there)
	mailbox.SendSystemMessage(hub, &actor.SuspendMailbox{})
	synctest.Wait()
	return func() {
		mailbox.SendSystemMessage(hub, &actor.ResumeMailbox{})
		synctest.Wait()
	}
}

func idsOf(all []any) (ids []string) {
	for _, m := range all {
		if leases, ok := m.(*messages.Leases); ok {
			for _, l := range leases.GetLeases() {
				ids = append(ids, l.GetId())
			}
		}
	}
	return ids
}

// A timer that is cancelled while its hub is held up reaches no subscriber, nor does the
// end of its lease. Its credit is free.
func TestLeaseThatEndedBeforeItWasSentIsNotSent(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		topic := wakebell.NewTopic[string]("topic")
		in := s.inbox()
		in.subscribe(topic.Name(), 1)
		release := s.hold(topic.Name())
		_, err := topic.Schedule(t.Context(), s.world.Client(), "x", wakebell.ID("cancelled"))
		require.NoError(t, err)
		s.world.Advance(0)
		_, err = topic.Cancel(t.Context(), s.world.Client(), "cancelled")
		require.NoError(t, err)
		s.world.Advance(0)
		release()
		require.Empty(t, in.took())

		_, err = topic.Schedule(t.Context(), s.world.Client(), "x", wakebell.ID("next"))
		require.NoError(t, err)
		s.world.Advance(0)
		require.Equal(t, []string{"next"}, idsOf(in.took()))
	})
}

// A caller that sends a frame after the other has at most two of them in the mailbox of a hub.
// Messages about other topics do not wait for that hub.
func TestCallerWaitsForHubThatIsHeldUp(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		in := s.inbox()
		in.subscribe("topic", 1)
		in.subscribe("other", 1)
		release := s.hold("topic")
		send := func(topic string) chan struct{} {
			turns, all := peer.NewTurns(s.root.ActorSystem(), s.pid.GetId()), make(chan struct{}, 10)
			t.Cleanup(turns.Close)
			go func() {
				for range cap(all) {
					m := &messages.Verdicts{Topic: topic, Subscriber: "s"}
					s.root.Send(s.pid, m)
					turns.Passed(s.pid.GetId(), m)
					all <- struct{}{}
					if turns.Take(t.Context()) != nil {
						return
					}
				}
			}()
			synctest.Wait()
			return all
		}
		held := send("topic")
		require.Len(t, held, 2)
		require.Len(t, send("other"), 10)
		require.Len(t, send("none"), 10)
		release()
		require.Len(t, held, 10)
	})
}

// Verdicts without effect do not compute how many leases all subscribers may have.
func TestVerdictsWithoutEffectChangeNothing(t *testing.T) {
	t.Parallel()
	f := newFixture()
	s := f.with(t, "a", "s", 10, 0)
	s.mine.takes = -1
	f.verdicts(&messages.Verdicts{Subscriber: "s", Verdicts: []*messages.Verdict{{Kind: &messages.Verdict_Ack{Ack: &messages.Ack{Delivery: 7}}}}}, "a", nil)
	require.Equal(t, -1, s.mine.takes)
}

// A link that breaks before the hub has the SubscribeRequest on it leaves the leases of its
// subscriber to expire.
func TestLeasesOfLinkThatBreaksAtOnceExpire(t *testing.T) {
	t.Parallel()
	withRouter(t, func(t *testing.T, s *stand) {
		topic := wakebell.NewTopic[string]("topic")
		first, other := s.inbox(), s.inbox()
		first.subscribe(topic.Name(), 1)
		_, err := topic.Schedule(t.Context(), s.world.Client(), "x", wakebell.ID("id"))
		require.NoError(t, err)
		s.world.Advance(0)
		require.Equal(t, []string{"id"}, idsOf(first.took()))
		release, second := s.hold(topic.Name()), s.inbox()
		second.say(&messages.SubscribeRequest{Topic: topic.Name(), Subscriber: "s", Credits: 1})
		s.root.ActorSystem().ProcessRegistry.Remove(second.self) // as a session that ends
		release()
		other.say(&messages.SubscribeRequest{Topic: topic.Name(), Subscriber: "other", Credits: 1})
		s.world.Advance(25 * time.Second)
		require.Empty(t, idsOf(other.took()), "the handler of the first may go on")
		s.world.Advance(10 * time.Second)
		require.Equal(t, []string{"id"}, idsOf(other.took()))
	})
}

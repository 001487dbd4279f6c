package reminder_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestActorIsReminded(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		pid := m.spawn(t, sys, "cart-17")
		remind(t, sys, pid, "close", reminder.In(3*time.Hour))
		remind(t, sys, pid, "ask", reminder.At(time.Now().Add(time.Hour)))
		w.Advance(time.Hour - time.Second)
		require.ElementsMatch(t, []string{"set close", "set ask"}, m.took())
		w.Advance(time.Second)
		require.Equal(t, []string{"ask: of ask #1 at 01:00:00"}, m.took())
		w.Advance(24 * time.Hour)
		require.Equal(t, []string{"close: of close #1 at 03:00:00"}, m.took())
		require.Empty(t, w.Upcoming(remindersOfA))
	})
}

func TestSettingReminderAgainReplacesIt(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m, other := &minder{}, &minder{}
		pid := m.spawn(t, sys, "cart-17")
		remind(t, sys, pid, "close", reminder.In(time.Hour))
		remind(t, sys, pid, "close", reminder.In(2*time.Hour))
		remind(t, sys, other.spawn(t, sys, "cart-18"), "close", reminder.In(time.Hour))
		w.Advance(90 * time.Minute)
		require.Equal(t, []string{"set close", "set close"}, m.took())
		require.Equal(t, []string{"set close", "close: of close #1 at 01:00:00"}, other.took())
		w.Advance(time.Hour)
		require.Equal(t, []string{"close: of close #1 at 02:00:00"}, m.took())
	})
}

func TestForgottenReminderIsNotDelivered(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		pid := m.spawn(t, sys, "cart-17")
		remind(t, sys, pid, "close", reminder.In(time.Hour))
		for range 2 {
			require.NoError(t, in(t, sys, pid, func(c actor.Context) error { return reminder.Forget(c, "close") }))
		}
		w.Advance(2 * time.Hour)
		require.Equal(t, []string{"set close", "forgot close true", "forgot close false"}, m.took())
	})
}

func TestReminderIsRepeatedUntilItIsAcknowledged(t *testing.T) {
	cfg := minding(func(c *wakebell.Config) { c.Reminders.AckTimeout = 5 * time.Second })
	withReminders(t, cfg, func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		m.answers(func(_ actor.Context, r *messages.Reminder) any {
			switch r.GetAttempt() {
			case 1:
				return r.Nack(errors.New("not now"))
			case 2:
				return nil // no answer
			case 3:
				return r.NackIn(time.Hour, errors.New("closed"))
			default:
				return r.Ack()
			}
		})
		remind(t, sys, m.spawn(t, sys, "cart-17"), "close", reminder.In(time.Second))
		w.Advance(30 * time.Second)
		at := "close: of close #%d at 00:00:01"
		require.Equal(t, []string{"set close", fmt.Sprintf(at, 1), fmt.Sprintf(at, 2), fmt.Sprintf(at, 3)}, m.took())
		state, err := sys.Reminders().Get(t.Context(), reminder.Recipient{ID: "cart-17"}, "close")
		require.NoError(t, err)
		require.Equal(t, reminder.Retrying, state.Status)
		require.Contains(t, state.LastError, "closed")
		w.Advance(time.Hour)
		require.Equal(t, []string{fmt.Sprintf(at, 4)}, m.took())
		require.Empty(t, w.Upcoming(remindersOfA))
		require.Empty(t, w.Dead(remindersOfA))
		w.Advance(10 * time.Second)
		var attempts []string
		for a, err := range w.Client().History(t.Context(), remindersOfA, wakebelltype.HistoryFilter{ID: "actor/cart-17/close"}, wakebelltype.Page{}) {
			require.NoError(t, err)
			attempts = append(attempts, fmt.Sprintf("%d %s", a.Attempt, a.Outcome))
		}
		require.Equal(t, []string{"1 retried", "2 retried", "3 retried", "4 acked"}, attempts)
		found, err := w.Client().Throughput(t.Context(), remindersOfA, 2*time.Hour)
		require.NoError(t, err)
		var sum wakebelltype.ThroughputCounts
		for _, p := range found.Points {
			sum.Scheduled, sum.Handled, sum.Failed = sum.Scheduled+p.Scheduled, sum.Handled+p.Handled, sum.Failed+p.Failed
		}
		require.Equal(t, wakebelltype.ThroughputCounts{Scheduled: 1, Handled: 1, Failed: 3}, sum)
	})
}

func TestUndeliverableReminderIsDeadLettered(t *testing.T) {
	cfg := minding(func(c *wakebell.Config) {
		c.Reminders.MaxAttempts = 3
	})
	withReminders(t, cfg, func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		set := func(to reminder.Recipient) {
			_, err := sys.Reminders().Set(t.Context(), to, "close", reminder.In(time.Hour), text("x"))
			require.NoError(t, err)
		}
		m := &minder{}
		m.spawn(t, sys, "mute")
		m.answers(func(actor.Context, *messages.Reminder) any { return nil })
		n := &minder{}
		n.spawn(t, sys, "no")
		n.answers(func(_ actor.Context, r *messages.Reminder) any { return r.Reject(errors.New("no such cart")) })
		set(reminder.Recipient{ID: "missing"})
		set(reminder.Recipient{ID: "cart-17", Address: "127.0.0.1:1"}) // this address is unreachable
		set(reminder.Recipient{ID: "mute"})
		set(reminder.Recipient{ID: "no"})
		w.Advance(2 * time.Hour)
		reasons := map[string]string{}
		for _, letter := range w.Dead(remindersOfA) {
			reasons[letter.ID] = fmt.Sprint(letter.Attempts, " ", letter.Reason)
		}
		require.Len(t, reasons, 4)
		require.Contains(t, reasons["actor/missing/close"], "3 ")
		require.Contains(t, reasons["actor/missing/close"], reminder.ErrUnreachable.Error())
		require.Contains(t, reasons["at/127.0.0.1:1/cart-17/close"], reminder.ErrUnreachable.Error())
		require.Contains(t, reasons["actor/mute/close"], "not answered in time")
		require.Equal(t, "1 no such cart", reasons["actor/no/close"])
		require.Len(t, m.took(), 3)
	})
}

func TestReminderOutlivesItsActor(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		pid := m.spawn(t, sys, "cart-17")
		remind(t, sys, pid, "restarted", reminder.In(time.Hour))
		remind(t, sys, pid, "stopped", reminder.In(2*time.Hour))
		w.Advance(0)
		require.Len(t, m.took(), 2)
		sys.ActorSystem().Root.Send(pid, tell(func(actor.Context) { panic("on purpose") }))
		w.Advance(time.Hour)
		require.Equal(t, []string{"restarted: of restarted #1 at 01:00:00"}, m.took())
		require.NoError(t, sys.ActorSystem().Root.StopFuture(pid).Wait())
		w.Advance(time.Hour + 500*time.Millisecond) // it is due while there is no such actor
		m.spawn(t, sys, "cart-17")
		w.Advance(time.Minute)
		require.Equal(t, []string{"stopped: of stopped #2 at 02:00:00"}, m.took())
	})
}

func TestReminderOutlivesItsNode(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		remind(t, sys, m.spawn(t, sys, "cart-17"), "close", reminder.In(time.Hour))
		w.Advance(time.Minute)
		w.Crash()
		w.Nodes()[0].Start()
		after := &minder{}
		after.spawn(t, w.Nodes()[0].System(), "cart-17")
		w.Advance(time.Hour)
		require.Equal(t, []string{"close: of close #1 at 01:00:00"}, after.took())
	})
}

// An actor of the same name at another node is another actor.
func TestNodeRemindsItsOwnActors(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, a *wakebell.System) {
		b := w.Start(minding(func(c *wakebell.Config) { c.Reminders.Node = "b" })).System()
		ma, mb := &minder{}, &minder{}
		ma.spawn(t, a, "cart-17")
		remind(t, b, mb.spawn(t, b, "cart-17"), "close", reminder.In(time.Hour))
		w.Advance(2 * time.Hour)
		require.Empty(t, ma.took())
		require.Equal(t, []string{"set close", "close: of close #1 at 01:00:00"}, mb.took())
	})
}

func TestRecurringReminder(t *testing.T) {
	cfg := minding(func(c *wakebell.Config) { c.Scheduler = &recurring.SchedulerConfig{} })
	withReminders(t, cfg, func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		pid := m.spawn(t, sys, "cart-17")
		every := func(d time.Duration, s string) {
			require.NoError(t, in(t, sys, pid, func(c actor.Context) error {
				return reminder.SetEvery(c, "count", recurring.Rule{Every: d}, text(s))
			}))
		}
		remind(t, sys, pid, "count", reminder.In(30*time.Minute)) // replaces the recurring reminder
		every(time.Hour, "sheep")
		w.Advance(2*time.Hour + time.Minute)
		require.Equal(t, []string{"set count", "set count", "count: sheep #1 at 01:00:00 run 1", "count: sheep #1 at 02:00:00 run 2"}, m.took())

		every(2*time.Hour, "goats")
		w.Advance(2 * time.Hour)
		require.Equal(t, []string{"set count", "count: goats #1 at 04:01:00 run 3"}, m.took())

		// Replacing the schedule also removes the run that waits for its next
		// attempt, and its message.
		m.answers(func(_ actor.Context, r *messages.Reminder) any { return r.NackIn(10*time.Minute, errors.New("busy")) })
		w.Advance(2 * time.Hour)
		require.Equal(t, []string{"count: goats #1 at 06:01:00 run 4"}, m.took())
		every(2*time.Hour, "cows")
		w.Advance(2 * time.Hour)
		require.Equal(t, []string{"set count", "count: cows #1 at 08:01:00 run 5"}, m.took())
		require.NoError(t, in(t, sys, pid, func(c actor.Context) error { return reminder.Forget(c, "count") }))
		w.Advance(24 * time.Hour)
		require.Equal(t, []string{"forgot count true"}, m.took())
		require.Empty(t, w.Upcoming(remindersOfA))

		every(time.Hour, "sheep")
		remind(t, sys, pid, "count", reminder.In(30*time.Minute)) // replaces the recurring reminder
		m.answers(nil)
		w.Advance(24 * time.Hour)
		require.Len(t, m.took(), 3)
	})
}

// cluster is a Cluster with its actors in a map.
type cluster map[string]func(*messages.Reminder) (any, error)

func (c cluster) Request(_ context.Context, kind, identity string, message proto.Message) (any, error) {
	if f, ok := c[kind+"/"+identity]; ok {
		return f(message.(*messages.Reminder))
	}
	return nil, errors.New("no member can activate it")
}

func TestIdentityIsReminded(t *testing.T) {
	t.Parallel()
	var names []string
	refused := errors.New("not yet")
	grains := cluster{"cart/17": func(r *messages.Reminder) (any, error) {
		names = append(names, fmt.Sprint(r.GetName(), r.GetAttempt()))
		switch r.GetAttempt() {
		case 1:
			return nil, refused
		case 2:
			return &messages.Ack{Delivery: r.GetDelivery() + 1}, nil // the delivery number of another reminder
		case 3:
			return "yes", nil
		case 4:
			return r.Nack(refused), nil
		}
		return r.Ack(), nil
	}}
	wakebelltest.Run(t, minding(), func(t *testing.T, w *wakebelltest.World) { // a node without a cluster
		a := w.Nodes()[0].System()
		asks := a.ActorSystem().Root.Spawn(actor.PropsFromFunc((&minder{}).Receive))
		defer a.ActorSystem().Root.Stop(asks)
		me := reminder.Identity("cart", "17")
		require.NoError(t, in(t, a, asks, func(c actor.Context) error {
			return reminder.Set(c, "close", reminder.In(time.Hour), text("x"), me)
		}))
		require.ErrorIs(t, in(t, a, asks, func(c actor.Context) error {
			return reminder.Forget(c, "close", me, me)
		}), wakebell.ErrInvalid)
		w.Advance(2 * time.Hour)
		require.Empty(t, names)
		w.Start(minding(func(c *wakebell.Config) { c.Reminders.Node, c.Reminders.Cluster = "b", grains }))
		w.Advance(time.Minute)
		require.Equal(t, []string{"close1", "close2", "close3", "close4", "close5"}, names)
		require.Empty(t, w.Upcoming(reminder.DefaultTopic))
	})
}

func TestAutomaticNamesAreRefused(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		root := sys.ActorSystem().Root
		m := &minder{}
		automatic := root.Spawn(actor.PropsFromFunc(m.Receive))
		prefixed := root.SpawnPrefix(actor.PropsFromFunc(m.Receive), "cart")
		named := m.spawn(t, sys, "cart-17")
		children := make(chan *actor.PID, 2)
		for _, parent := range []*actor.PID{named, automatic} {
			require.NoError(t, in(t, sys, parent, func(c actor.Context) error {
				child := c.Spawn
				if parent == automatic {
					child = func(p *actor.Props) *actor.PID { pid, _ := c.SpawnNamed(p, "named"); return pid }
				}
				children <- child(actor.PropsFromFunc(m.Receive))
				return nil
			}))
		}
		for _, pid := range []*actor.PID{automatic, prefixed, receive(t, children), receive(t, children)} {
			err := in(t, sys, pid, func(c actor.Context) error { return reminder.Set(c, "close", reminder.In(0), text("x")) })
			require.ErrorIs(t, err, reminder.ErrAutomaticName, pid.GetId())
			require.ErrorIs(t, err, wakebell.ErrInvalid)
			err = in(t, sys, pid, func(c actor.Context) error {
				return reminder.SetEvery(c, "close", recurring.Rule{Every: time.Hour}, text("x"))
			})
			require.ErrorIs(t, err, reminder.ErrAutomaticName, pid.GetId())
			_, err = sys.Reminders().Set(t.Context(), reminder.Actor(pid), "close", reminder.In(0), text("x"))
			require.ErrorIs(t, err, reminder.ErrAutomaticName, pid.GetId())
			root.RequestWithCustomSender(sys.Reminders().PID(), &messages.SetReminderRequest{Name: "by mail", Message: anyOf(t, text("x"))}, pid)
		}
		w.Advance(time.Hour)
		require.Equal(t, []string{
			"failed by mail: CODE_INVALID", "failed by mail: CODE_INVALID", "failed by mail: CODE_INVALID", "failed by mail: CODE_INVALID",
		}, m.took())
		require.Empty(t, w.Upcoming(remindersOfA))
		for _, pid := range []*actor.PID{automatic, prefixed} {
			root.Stop(pid)
		}
	})
}

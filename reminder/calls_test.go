package reminder_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func anyOf(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	require.NoError(t, err)
	return a
}

// An actor without a System sets and receives reminders by message.
func TestRemindersByMessage(t *testing.T) {
	cfg := minding(func(c *wakebell.Config) { c.Scheduler = &recurring.SchedulerConfig{} })
	withReminders(t, cfg, func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		pid := m.spawn(t, sys, "cart-17")
		ask := func(r proto.Message) {
			sys.ActorSystem().Root.RequestWithCustomSender(sys.Reminders().PID(), r, pid)
			w.Advance(0)
		}
		what := anyOf(t, text("x"))
		ask(&messages.SetReminderRequest{Name: "now", Message: what})
		require.ElementsMatch(t, []string{"set now", "now: x #1 at 00:00:00"}, m.took()) // in any order
		ask(&messages.SetReminderRequest{Name: "in", Message: what, When: &messages.SetReminderRequest_In{In: durationpb.New(time.Hour)}})
		ask(&messages.SetReminderRequest{Name: "at", Message: what, When: &messages.SetReminderRequest_At{At: timestamppb.New(time.Now().Add(90 * time.Minute))}})
		ask(&messages.SetReminderRequest{Name: "every", Message: what, When: &messages.SetReminderRequest_Every{Every: durationpb.New(2 * time.Hour)}})
		ask(&messages.SetReminderRequest{Name: "cron", Message: what, When: &messages.SetReminderRequest_Cron{Cron: "15 12 * * *"}, Zone: "Asia/Tokyo"})
		ask(&messages.SetReminderRequest{Name: "no", Message: what, When: &messages.SetReminderRequest_In{In: durationpb.New(time.Hour)}})
		ask(&messages.ForgetReminderRequest{Name: "no"})
		w.Advance(4 * time.Hour)
		require.Equal(t, []string{
			"set in", "set at", "set every", "set cron", "set no", "forgot no true",
			"in: x #1 at 01:00:00", "at: x #1 at 01:30:00", "every: x #1 at 02:00:00 run 1", "cron: x #1 at 03:15:00 run 1",
			"every: x #1 at 04:00:00 run 2",
		}, m.took())

		for _, wrong := range []*messages.SetReminderRequest{
			{Message: what},
			{Name: "x"},
			{Name: "x", Message: what, When: &messages.SetReminderRequest_Every{Every: durationpb.New(0)}},
			{Name: "x", Message: what, When: &messages.SetReminderRequest_Every{}},
			{Name: "x", Message: what, When: &messages.SetReminderRequest_At{}},
			{Name: "x", Message: what, When: &messages.SetReminderRequest_Cron{Cron: "at noon"}},
			{Name: "x", Message: what, Timeout: durationpb.New(-1)},
		} {
			ask(wrong)
			require.Equal(t, []string{"failed " + wrong.GetName() + ": CODE_INVALID"}, m.took(), wrong)
		}
		sys.ActorSystem().Root.Send(sys.Reminders().PID(), &messages.SetReminderRequest{Name: "without-sender", Message: what})
		w.Advance(0)
		require.Empty(t, w.Upcoming(remindersOfA))
	})
}

func TestInvalidReminderCallsAreRefused(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		pid := m.spawn(t, sys, "cart-17")
		for what, call := range map[string]func(c actor.Context) error{
			"no name": func(c actor.Context) error { return reminder.Set(c, "", reminder.In(0), text("x")) },
			"long name": func(c actor.Context) error {
				return reminder.Set(c, string(make([]byte, 400)), reminder.In(0), text("x"))
			},
			"no when":    func(c actor.Context) error { return reminder.Set(c, "x", reminder.When{}, text("x")) },
			"no instant": func(c actor.Context) error { return reminder.Set(c, "x", reminder.At(time.Time{}), text("x")) },
			"no message": func(c actor.Context) error { return reminder.Set(c, "x", reminder.In(0), nil) },
			"nil message": func(c actor.Context) error {
				return reminder.Set(c, "x", reminder.In(0), (*messages.Ack)(nil))
			},
			"too large": func(c actor.Context) error {
				return reminder.Set(c, "x", reminder.In(0), text(string(make([]byte, wakebell.DefaultPayloadLimit))))
			},
			"no rule": func(c actor.Context) error { return reminder.SetEvery(c, "x", recurring.Rule{}, text("x")) },
			"forget":  func(c actor.Context) error { return reminder.Forget(c, "") },
			"unregistered": func(c actor.Context) error {
				return reminder.Set(c, "x", reminder.In(0), unregistered(t))
			},
		} {
			require.ErrorIs(t, in(t, sys, pid, call), wakebell.ErrInvalid, what)
		}
		require.ErrorIs(t, reminder.Set(nil, "x", reminder.In(0), text("x")), wakebell.ErrInvalid)
		w.Advance(time.Hour)
		require.Empty(t, m.took())
	})
}

func TestRemindersNeedSystemThatEnablesThem(t *testing.T) {
	t.Parallel()
	call := func(c actor.Context) error { return reminder.Set(c, "x", reminder.In(time.Hour), text("x")) }
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		without := w.Start(wakebell.Config{})
		sys := without.System()
		pid := (&minder{}).spawn(t, sys, "cart-17")
		require.ErrorIs(t, in(t, sys, pid, call), reminder.ErrDisabled)
		_, err := sys.Reminders().Set(t.Context(), reminder.Actor(pid), "x", reminder.In(0), text("x"))
		require.ErrorIs(t, err, reminder.ErrDisabled)
		for _, err := range sys.Reminders().List(t.Context(), reminder.Recipient{}, wakebelltype.Page{}) {
			require.ErrorIs(t, err, reminder.ErrDisabled)
		}
		without.Crash()
		require.ErrorIs(t, in(t, sys, pid, call), wakebell.ErrNotRunning)

		// A System with another name is found if it is the only one.
		sys = w.Start(minding(func(c *wakebell.Config) { c.Name = "shop" })).System()
		pid = (&minder{}).spawn(t, sys, "cart-17")
		require.NoError(t, in(t, sys, pid, call))
		w.Advance(0)
		_, err = sys.Reminders().Get(t.Context(), reminder.Actor(pid), "x")
		require.NoError(t, err)
		twin, err := wakebell.New(sys.ActorSystem(), conntest.New(t, w.Redis(), connection.Config{}), minding(func(c *wakebell.Config) {
			c.Name, c.Reminders.Node, c.DrainTimeout = "twin", "b", -1
		}))
		require.NoError(t, err)
		require.NoError(t, twin.Start(t.Context()))
		require.ErrorIs(t, in(t, sys, pid, call), wakebell.ErrInvalid)
		require.NoError(t, twin.Stop())
	})
}

func TestRemindersAreListed(t *testing.T) {
	cfg := minding(func(c *wakebell.Config) { c.Reminders.Cluster = cluster{} })
	withRemindersOn(t, connection.Config{Prefix: "shop:"}, cfg, func(t *testing.T, _ *wakebelltest.World, sys *wakebell.System) {
		r, ctx := sys.Reminders(), t.Context()
		cart, grain := reminder.Recipient{ID: "cart-17"}, reminder.Identity("cart", "17")
		set := func(to reminder.Recipient, name string) {
			due, err := r.Set(ctx, to, name, reminder.In(time.Hour), text(name))
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(time.Hour), due, time.Second)
		}
		set(cart, "close")
		set(reminder.Recipient{ID: "cart-18"}, "close")
		set(reminder.Recipient{ID: "cart-17", Address: "10.0.0.5:7070"}, "close")
		set(grain, "ask")
		require.NoError(t, r.SetEvery(ctx, cart, "count", recurring.Rule{Every: time.Hour}, text("sheep")))
		require.NoError(t, r.SetEvery(ctx, grain, "count", recurring.Rule{Cron: "0 9 * * *"}, text("sheep")))

		list := func(to reminder.Recipient) (lines []string) {
			for s, err := range r.List(ctx, to, wakebelltype.Page{}) {
				require.NoError(t, err)
				lines = append(lines, s.To.String()+" / "+s.Name+" / "+s.RuleText)
			}
			return lines
		}
		require.ElementsMatch(t, []string{"cart-17 / close / ", "cart-17 / count / every 1h0m0s"}, list(cart))
		require.ElementsMatch(t, []string{"cart 17 / ask / ", "cart 17 / count / cron 0 9 * * *"}, list(grain))
		require.Len(t, list(reminder.Recipient{}), 6)

		state, err := r.Get(ctx, cart, "close")
		require.NoError(t, err)
		what, err := state.Message.UnmarshalNew()
		require.NoError(t, err)
		require.True(t, proto.Equal(text("close"), what))
		require.Equal(t, reminder.Pending, state.Status)
		state, err = r.Get(ctx, grain, "count")
		require.NoError(t, err)
		require.Equal(t, "cron 0 9 * * *", state.RuleText)
		require.Equal(t, "2000-01-01T09:00:00Z", state.Due.UTC().Format(time.RFC3339))

		for _, to := range []reminder.Recipient{cart, grain} {
			found, err := r.Forget(ctx, to, "count")
			require.NoError(t, err)
			require.True(t, found)
			_, err = r.Get(ctx, to, "count")
			require.ErrorIs(t, err, wakebell.ErrNotFound)
		}
		require.Len(t, list(reminder.Recipient{}), 4)
	})
}

func TestReminderConfigs(t *testing.T) {
	t.Parallel()
	for what, wrong := range map[string]reminder.Config{
		"Reminders.Node":         {},
		"Reminders.Node: \"\xff": {Node: "\xff"},
		"Reminders.Topic":        {Node: "a", Topic: string(make([]byte, 512))},
		"Reminders.AckTimeout":   {Node: "a", AckTimeout: -1},
		"MaxAttempts":            {Node: "a", MaxAttempts: -1},
	} {
		_, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), wakebell.Config{Reminders: &wrong})
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		if what != "Reminders.Node: \"\xff" {
			require.ErrorContains(t, err, what)
		}
	}
}

// The recipient of a reminder that is set by message is the sender.
func TestMessageCannotSetReminderForAnotherActor(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		m := &minder{}
		m.spawn(t, sys, "cart-17")
		body, err := proto.Marshal(&messages.KeptReminder{To: &messages.Recipient{Id: "cart-17"}, Name: "forged", Message: anyOf(t, text("x"))})
		require.NoError(t, err)
		ask := func(request messages.Request) error {
			future := sys.ActorSystem().Root.RequestFuture(sys.Gateway(), request, time.Minute)
			w.Advance(0)
			_, err := wakebell.Answered[messages.Answer](future.Result())
			return err
		}
		for _, topic := range []string{remindersOfA, reminder.DefaultTopic, reminder.DefaultTopic + ":b"} {
			forged := &messages.ScheduleRequest{Topic: topic, Id: "actor/cart-17/forged", Body: body, ContentType: "application/x-protobuf"}
			require.ErrorIs(t, ask(forged), wakebell.ErrInvalid)
			require.ErrorIs(t, ask(&messages.ScheduleBatchRequest{Timers: []*messages.ScheduleRequest{{Topic: "other"}, forged}}), wakebell.ErrInvalid)
			every := &messages.Recurrence{Rule: &messages.Recurrence_Every{Every: durationpb.New(time.Second)}}
			require.ErrorIs(t, ask(&messages.PutRecurringRequest{Schedules: []*messages.Recurring{
				{Name: "a", Topic: "other", When: every}, {Name: "b", Topic: topic, When: every, Body: body},
			}}), wakebell.ErrInvalid)
		}
		require.NoError(t, ask(&messages.ScheduleRequest{Topic: reminder.DefaultTopic + "-mine", Body: body}))
		require.NoError(t, ask(&messages.GetTopicStatsRequest{Topic: remindersOfA}))
		w.Advance(time.Minute)
		require.Empty(t, m.took())
	})
}

package reminder_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltest"
)

// Reminders that were set before a node ended are delivered by the next node of the
// same name, both single and recurring ones.
func TestRemindersOutliveTheirNodeOnRealRedis(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	cfg := minding(func(c *wakebell.Config) { c.Scheduler, c.DrainTimeout = &recurring.SchedulerConfig{}, patience })
	first := launch(t, rdb, cfg)
	m := &minder{}
	pid := m.spawn(t, first, "cart-17")
	remind(t, first, pid, "now", reminder.In(0))
	remind(t, first, pid, "later", reminder.In(time.Hour))
	remind(t, first, pid, "never", reminder.In(time.Hour))
	require.NoError(t, in(t, first, pid, func(c actor.Context) error { return reminder.Forget(c, "never") }))
	require.NoError(t, in(t, first, pid, func(c actor.Context) error {
		return reminder.SetEvery(c, "count", recurring.Rule{Every: 100 * time.Millisecond}, text("sheep"))
	}))
	var seen []string
	has := func(m *minder, what string) func() bool {
		return func() bool {
			seen = append(seen, m.took()...)
			return slices.ContainsFunc(seen, func(line string) bool { return strings.HasPrefix(line, what) })
		}
	}
	eventually(t, has(m, "now: of now"))
	eventually(t, has(m, "set count"))
	eventually(t, has(m, "count: sheep"))
	require.NoError(t, first.Stop())

	second := launch(t, rdb, cfg)
	state, err := second.Reminders().Get(t.Context(), reminder.Actor(pid), "later")
	require.NoError(t, err)
	require.Equal(t, reminder.Pending, state.Status)
	_, err = second.Reminders().Get(t.Context(), reminder.Actor(pid), "never")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	_, err = second.Client().RunNow(t.Context(), remindersOfA, "actor/cart-17/later")
	require.NoError(t, err)
	after := &minder{}
	after.spawn(t, second, "cart-17")
	seen = nil
	eventually(t, has(after, "later: of later"))
	eventually(t, has(after, "count: sheep"))
}

// While Redis is down, Set does not block an actor. The actor receives a
// ReminderFailed.
func TestActorReceivesReminderFailed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	log := &logged{}
	sys := launchOn(t, conntest.New(t, server.Client(t), connection.Config{Logger: log.logger(), RetryFor: 300 * time.Millisecond}), minding())
	m := &minder{}
	pid := m.spawn(t, sys, "cart-17")
	server.Kill()
	remind(t, sys, pid, "close", reminder.In(0)) // does not wait for Redis
	var got []string
	eventually(t, func() bool { got = append(got, m.took()...); return len(got) > 0 })
	require.Equal(t, []string{"failed close: CODE_UNAVAILABLE"}, got)
	require.Equal(t, 1, log.count("reminder request failed"))
	_, err := sys.Reminders().Set(t.Context(), reminder.Actor(pid), "close", reminder.In(0), text("x"))
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
}

// A timer that is no valid reminder is dead-lettered at the first attempt.
func TestInvalidRemindersAreDeadLettered(t *testing.T) {
	withReminders(t, minding(), func(t *testing.T, w *wakebelltest.World, sys *wakebell.System) {
		unknown := &anypb.Any{TypeUrl: "type.googleapis.com/nowhere.Message"}
		known := anyOf(t, text("x"))
		topic := wakebell.NewTopic[[]byte](remindersOfA)
		put := func(id string, body []byte) {
			_, err := topic.Schedule(context.Background(), w.Client(), body, wakebell.ID(id), wakebell.ContentType("application/x-protobuf"))
			require.NoError(t, err)
		}
		put("garbage", []byte{0xff})
		for id, m := range map[string]*messages.KeptReminder{
			"no recipient": {Name: "x", Message: known},
			"automatic":    {To: &messages.Recipient{Id: "$1"}, Name: "x", Message: known},
			"nameless":     {To: &messages.Recipient{Id: "cart-17"}, Message: known},
			"empty":        {To: &messages.Recipient{Id: "cart-17"}, Name: "x"},
			"unknown type": {To: &messages.Recipient{Id: "cart-17"}, Name: "x", Message: unknown},
		} {
			body, err := proto.Marshal(m)
			require.NoError(t, err)
			put(id, body)
		}
		m := &minder{}
		m.spawn(t, sys, "cart-17")
		w.Advance(time.Second)
		require.Len(t, w.Dead(remindersOfA), 6)
		for _, letter := range w.Dead(remindersOfA) {
			require.Equal(t, 1, letter.Attempts, letter.ID)
		}
		require.Empty(t, m.took())
	})
}

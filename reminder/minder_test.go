package reminder_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltest"
)

// tell makes an actor run a function in its Receive.
type tell func(actor.Context)

// minder is an actor that records its messages and answers reminders.
type minder struct {
	mu     sync.Mutex
	lines  []string
	answer func(actor.Context, *messages.Reminder) any // nil: an Ack; a nil answer: none
}

func (m *minder) Receive(c actor.Context) {
	switch what := c.Message().(type) {
	case tell:
		what(c)
	case *messages.Reminder:
		m.reminded(c, what)
	case *messages.ReminderFailed:
		m.note("failed %s: %s", what.GetName(), what.GetError().GetCode())
	case *messages.SetReminderResponse:
		m.note("set %s", what.GetName())
	case *messages.ForgetReminderResponse:
		m.note("forgot %s %t", what.GetName(), what.GetFound())
	}
}

func (m *minder) reminded(c actor.Context, r *messages.Reminder) {
	body, err := r.Read()
	text, ok := body.(*wrapperspb.StringValue)
	if err != nil || !ok {
		m.note("%s: %v", r.GetName(), err)
		return
	}
	run := ""
	if r.GetRun() > 0 {
		run = fmt.Sprintf(" run %d", r.GetRun())
	}
	m.note("%s: %s #%d at %s%s", r.GetName(), text.GetValue(), r.GetAttempt(), r.GetDue().AsTime().Format("15:04:05"), run)
	m.mu.Lock()
	answer := m.answer
	m.mu.Unlock()
	if answer == nil {
		c.Respond(r.Ack())
	} else if a := answer(c, r); a != nil {
		c.Respond(a)
	}
}

func (m *minder) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

// answers sets the answer to later reminders.
func (m *minder) answers(so func(actor.Context, *messages.Reminder) any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = so
}

// took returns and removes the recorded lines.
func (m *minder) took() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.lines
	m.lines = nil
	return taken
}

func (m *minder) spawn(t testing.TB, sys *wakebell.System, name string) *actor.PID {
	t.Helper()
	pid, err := sys.ActorSystem().Root.SpawnNamed(actor.PropsFromFunc(m.Receive), name)
	require.NoError(t, err)
	t.Cleanup(func() { sys.ActorSystem().Root.Stop(pid) })
	return pid
}

// in runs do in the Receive of an actor and returns its error.
func in(t testing.TB, sys *wakebell.System, pid *actor.PID, do func(actor.Context) error) error {
	t.Helper()
	done := make(chan error, 1)
	sys.ActorSystem().Root.Send(pid, tell(func(c actor.Context) { done <- do(c) }))
	return receive(t, done)
}

// remind lets an actor set itself a reminder with the text "of NAME".
func remind(t testing.TB, sys *wakebell.System, pid *actor.PID, name string, when reminder.When) {
	t.Helper()
	require.NoError(t, in(t, sys, pid, func(c actor.Context) error {
		return reminder.Set(c, name, when, text("of "+name))
	}))
}

func text(s string) proto.Message { return wrapperspb.String(s) }

// minding returns a configuration of a node that stores reminders.
func minding(change ...func(*wakebell.Config)) wakebell.Config {
	cfg := wakebell.Config{Reminders: &reminder.Config{Node: "a"}}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

const remindersOfA = reminder.DefaultTopic + ":a"

func withReminders(t *testing.T, cfg wakebell.Config, test func(*testing.T, *wakebelltest.World, *wakebell.System)) {
	t.Helper()
	withRemindersOn(t, connection.Config{}, cfg, test)
}

func withRemindersOn(t *testing.T, on connection.Config, cfg wakebell.Config, test func(*testing.T, *wakebelltest.World, *wakebell.System)) {
	t.Parallel()
	on.Logger = quiet
	wakebelltest.RunWith(t, on, cfg, func(t *testing.T, w *wakebelltest.World) {
		test(t, w, w.Nodes()[0].System())
	})
}

package remote_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// keeping returns a configuration with reminders in a topic of the test.
func keeping(t testing.TB, as string) wakebell.Config {
	t.Helper()
	return wakebell.Config{Reminders: &reminder.Config{
		Node: as, Topic: redistest.Name(t), AckTimeout: 5 * time.Second,
		RetryInitial: 50 * time.Millisecond, RetryLimit: 200 * time.Millisecond, MaxAttempts: 1000,
	}}
}

// keeper starts a served System, with reminders if its configuration has them.
func keeper(t testing.TB, cfg remote.Config, of wakebell.Config) *node {
	t.Helper()
	n := &node{log: &lines{}, topic: wakebell.NewTopic[string](redistest.Name(t))}
	return n.start(t, cfg, of)
}

// A System delivers a reminder to an actor of another System, which may be down when
// the reminder is due.
func TestActorAtAnotherNodeIsReminded(t *testing.T) {
	t.Parallel()
	there := withToken()
	there.Address = deadAddress(t)
	there.Allow = []remote.Allow{{Actor: "cart-17", Messages: []string{"wakebell.v1.Reminder"}}}
	here := withToken()
	here.Peers = []string{there.Address}
	a := keeper(t, here, keeping(t, "a"))
	set := func(name string) {
		_, err := a.Reminders().Set(t.Context(), reminder.Actor(actor.NewPID(there.Address, "cart-17")), name, reminder.In(0), wrapperspb.String("x"))
		require.NoError(t, err)
	}
	set("early")
	eventually(t, func() bool {
		for state, err := range a.Reminders().List(t.Context(), reminder.Recipient{}, wakebelltype.Page{}) {
			return err == nil && state.Attempts > 1
		}
		return false
	}, "delivery is attempted while the recipient is down")

	got := make(chan string, 100)
	cart := actor.PropsFromFunc(func(c actor.Context) {
		m, ok := c.Message().(*messages.Reminder)
		if !ok {
			return
		}
		if m.GetName() == "late" && m.GetAttempt() == 1 {
			c.Respond(m.NackIn(0, errors.New("not now")))
			return
		}
		body, err := m.Read()
		got <- fmt.Sprint(m.GetName(), " ", body.(*wrapperspb.StringValue).GetValue(), " ", err)
		c.Respond(m.Ack())
	})
	b := keeper(t, there, wakebell.Config{})
	_, err := b.ActorSystem().Root.SpawnNamed(cart, "cart-17")
	require.NoError(t, err)
	until := func(want string) { // earlier reminders may be delivered again
		t.Helper()
		for receive(t, got) != want {
			continue
		}
	}
	until("early x <nil>")
	set("late")
	until("late x <nil>")
	eventually(t, func() bool {
		n := 0
		for _, err := range a.Reminders().List(t.Context(), reminder.Recipient{}, wakebelltype.Page{}) {
			require.NoError(t, err)
			n++
		}
		return n == 0
	}, "what was acknowledged is gone")

	// The recipient restarts without a message about it.
	require.NoError(t, b.Stop())
	b.server.Stop()
	set("again")
	b = keeper(t, there, wakebell.Config{})
	_, err = b.ActorSystem().Root.SpawnNamed(cart, "cart-17")
	require.NoError(t, err)
	until("again x <nil>")
	a.alive(t)
	b.alive(t)
}

// Serving a node changes nothing for its own actors.
func TestActorOfServedNodeIsReminded(t *testing.T) {
	t.Parallel()
	n := keeper(t, withToken(), keeping(t, "a"))
	done := make(chan error, 10)
	pid, err := n.ActorSystem().Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case string:
			if err := reminder.Set(c, m, reminder.In(0), wrapperspb.String("x")); err != nil {
				done <- err
			}
		case *messages.Reminder:
			c.Respond(m.Ack())
			done <- nil
		}
	}), "cart-17")
	require.NoError(t, err)
	_, err = n.Reminders().Set(t.Context(), reminder.Actor(pid), "later", reminder.In(time.Hour), wrapperspb.String("x"))
	require.NoError(t, err)
	state, err := n.Reminders().Get(t.Context(), reminder.Recipient{ID: "cart-17"}, "later")
	require.NoError(t, err)
	require.Empty(t, state.To.Address, "it is found under any address that the node has later")
	n.ActorSystem().Root.Send(pid, "now")
	require.NoError(t, receive(t, done))
}

// beReminded is an actor behind protoactor's own remote, without a System. It sets a
// reminder at a node and prints it, or only prints it.
func beReminded(node, address string, only bool) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	system := behindRemote(n)
	reminders := actor.NewPID(node, "wakebell/reminders")
	what, err := anypb.New(wrapperspb.String("x"))
	if err != nil {
		return err
	}
	_, err = system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			c.Watch(reminders) // tells the node its address
			if !only {
				c.Request(reminders, &messages.SetReminderRequest{Name: "soon", Message: what})
				c.Request(reminders, &messages.SetReminderRequest{Name: "later", Message: what, When: &messages.SetReminderRequest_In{In: durationpb.New(time.Hour)}})
			}
		case *messages.SetReminderResponse:
			fmt.Println("set", m.GetName())
		case *messages.ReminderFailed:
			fmt.Println("failed", m.GetError().GetMessage())
		case *messages.Reminder:
			fmt.Println("reminded", m.GetName())
			c.Respond(m.Ack())
		}
	}), "cart-17")
	if err != nil {
		return err
	}
	<-time.After(time.Hour)
	return nil
}

// An actor without a System sets reminders at a node, and receives them after its
// process was killed.
func TestActorOfAnotherProcessIsReminded(t *testing.T) {
	t.Parallel()
	n := keeper(t, withToken(), keeping(t, "a"))
	address := deadAddress(t)
	first := spawn(t, "reminded", n.server.Address(), address)
	eventually(t, func() bool { return first.said("set soon") == 1 && first.said("set later") == 1 })
	eventually(t, func() bool { return first.said("reminded soon") > 0 })
	cart := reminder.Actor(actor.NewPID(address, "cart-17"))
	eventually(t, func() bool {
		_, err := n.Reminders().Get(t.Context(), cart, "soon")
		return errors.Is(err, wakebell.ErrNotFound)
	}, "what it said of it has arrived")
	first.kill()
	state, err := n.Reminders().Get(t.Context(), cart, "later")
	require.NoError(t, err)
	require.Equal(t, cart, state.To)
	second := spawn(t, "reminded", n.server.Address(), address, "only")
	_, err = n.Reminders().Set(t.Context(), cart, "later", reminder.In(0), wrapperspb.String("y"))
	require.NoError(t, err)
	eventually(t, func() bool { return second.said("reminded later") > 0 })
	require.Zero(t, second.said("reminded soon"))
}

package fleet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
)

// ackTimeout is how long an actor has to answer a reminder.
const ackTimeout = 2 * time.Second

// carts is how many actors with reminders each node has.
const carts = 2

// alarm is a call that sets or removes a reminder.
type alarm struct {
	by       string // the node that stores it
	cart     string // the node and its actor
	name     string
	body     string // empty: it removes the reminder
	from, to time.Time
	due      time.Time // at the earliest
	result   outcome
}

// subject names the reminder. Those that two nodes set are two.
func (a *alarm) subject() string { return a.by + " " + a.cart + " " + a.name }

// arrival is a reminder that an actor has received.
type arrival struct {
	cart, name, body string
	at               time.Time
	acked            bool
}

func cartName(i int) string { return "cart-" + strconv.Itoa(i) }

// spawnCarts starts the actors of a node.
func (f *fleet) spawnCarts(n *node, system *actor.ActorSystem) error {
	for i := range carts {
		name := cartName(i)
		props := actor.PropsFromFunc(func(c actor.Context) {
			if m, ok := c.Message().(*messages.Reminder); ok {
				f.reminded(c, n.name()+"/"+name, m)
			}
		})
		if _, err := system.Root.SpawnNamed(props, name); err != nil {
			return err
		}
	}
	return nil
}

// reminded answers a reminder. Now and then there is no answer, or a nack.
func (f *fleet) reminded(c actor.Context, cart string, m *messages.Reminder) {
	what, err := m.Read()
	if err != nil {
		f.check(err, "read a reminder")
		return
	}
	a := arrival{cart: cart, name: m.GetName(), body: what.(*wrapperspb.StringValue).GetValue(), at: time.Now()}
	switch f.plan.draw(fmt.Sprint(a.body, m.GetAttempt()), 10) {
	case 0:
	case 1:
		c.Respond(m.Nack(errFailed))
	default:
		a.acked = true
		c.Respond(m.Ack())
	}
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.arrived = append(f.record.arrived, a)
	f.record.line("%s: reminder %s %s arrives, acked %v", cart, a.name, a.body, a.acked)
}

// remind sets a reminder of an actor, or removes it. The actor may be at another node, which delivers
// it over their link.
func (f *fleet) remind(o Op, removes bool) {
	n, at := f.nodes[o.A%len(f.nodes)], f.nodes[(o.A+o.B%2)%len(f.nodes)]
	run := n.running()
	if run == nil {
		return
	}
	to := reminder.Recipient{ID: cartName(o.B / 2 % carts)}
	if at != n {
		to.Address = at.address()
	}
	in := f.plan.delay(o)
	a := &alarm{by: n.name(), cart: at.name() + "/" + to.ID, name: "name-" + strconv.Itoa(o.C%3)}
	defer f.locks.take(a.subject())()
	if a.from = time.Now(); !removes {
		a.body, a.due = o.body(), micros(a.from.Add(in))
	}
	f.alarm(a, "set reminder %s %q in %v", a.name, a.body, in)
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	var err error
	if removes {
		_, err = run.sys.Reminders().Forget(ctx, to, a.name)
	} else {
		_, err = run.sys.Reminders().Set(ctx, to, a.name, reminder.In(in), wrapperspb.String(a.body))
	}
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	a.to, a.result = time.Now(), outcomeOf(err)
	f.record.line("%s for %s: reminder %s %q is set: %v", a.by, a.cart, a.name, a.body, err)
}

// alarm records a call that begins.
func (f *fleet) alarm(a *alarm, format string, args ...any) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.alarms = append(f.record.alarms, a)
	f.record.line(a.by+" for "+a.cart+": "+format, args...)
}

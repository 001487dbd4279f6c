package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/opened"
	wire "github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// minder is reminders of an identity of a cluster, with what is known of them: their timers, and
// their schedules, which are among those of the sim.
type minder struct {
	*side
	calls     *reminder.Reminders // of a process that may die between two commands
	deliver   func(context.Context, hosted.Reminder) error
	reminders map[string]*reminded // by the ids of their timers
	texts     int
}

// reminded is what is known of a reminder.
type reminded struct {
	name         string
	id, schedule string // of its timer, and the name of its schedule
	once, every  string // the messages that these have, or had
	busy         bool   // a call is being made
}

// minding returns the reminders, and begins them: in half of the plans their topic has shards.
func (s *sim) minding() *minder {
	if s.minder != nil {
		return s.minder
	}
	mortal, its := s.mortal()
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s.atEnd = append(s.atEnd, actors.Shutdown)
	m := &minder{side: s.beside(its), reminders: map[string]*reminded{}}
	m.calls, _ = m.hosted(mortal, actors)
	_, parts := m.hosted(s.rdb, actors)
	m.deliver = parts.Deliver
	if s.plan.Seed/8%2 == 1 {
		if _, err := m.store.Divide(s.ctx, reminder.DefaultTopic, 2); err != nil {
			s.broken("errors", "divide: %v", err)
		}
	}
	s.minder, s.reshaped = m, time.Now()
	return m
}

// hosted returns the reminders of a System on a Redis client.
func (m *minder) hosted(rdb *redis.Client, actors *actor.ActorSystem) (*reminder.Reminders, hosted.Parts) {
	conn, err := connection.Switched(rdb, connection.Config{NoCounts: true}, opened.Switches{NoCoalescing: true})
	if err != nil {
		panic(err)
	}
	on, err := opened.Of((*opened.Handle)(conn))
	if err != nil {
		panic(err)
	}
	schedules, err := recurring.New(conn)
	if err != nil {
		panic(err)
	}
	return reminder.Hosted(&reminder.Config{Node: "n", Cluster: m}, hosted.Node{
		Conn: on, Actors: actors, Store: m.sim.store(rdb), Schedules: schedules,
		Nack: func(n *wire.Nack) error { return errors.New(n.GetReason()) }, Reject: func(error) error { return errRejected }, Unreadable: errRejected,
	})
}

// poll starts the pollers of a node.
func (m *minder) poll(n *node) {
	n.track(&n.flows[0], n.store, reminder.DefaultTopic, func(p *poller) { p.account, p.limits = m, &exchange.Flow{} })
}

// cart is the recipient of all reminders.
var cart = reminder.Identity("cart", "17")

// pick returns the reminder that an operation names.
func (m *minder) pick(o Op) *reminded {
	name := fmt.Sprint("n", o.A%2)
	id := strings.Join([]string{"identity", cart.Kind, cart.ID, name}, "/")
	r := m.reminders[id]
	if r == nil {
		r = &reminded{name: name, id: id, schedule: reminder.DefaultTopic + "/" + id}
		m.reminders[id] = r
	}
	return r
}

// remind sets a reminder that comes once.
func (m *minder) remind(o Op) {
	r, in := m.pick(o), max(m.sim.delay(o.B), 0)
	m.call("remind "+r.id, r, setting{once: true}, func(text string) error {
		due, err := m.calls.Set(m.sim.ctx, cart, r.name, reminder.In(in), wrapperspb.String(text))
		if err == nil && due.Sub(m.sim.now().Add(in)).Abs() > grain {
			m.sim.broken("answers", "%s is due at %v, expected in %v", r.id, due, in)
		}
		return err
	})
}

// remindEvery sets a recurring reminder.
func (m *minder) remindEvery(o Op) {
	r, of := m.pick(o), m.sim.rule(o.B)
	rule := recurring.Rule{Every: of.every, Cron: of.cron, Zone: of.zone, SkipGaps: of.skip, Misfire: recurring.Misfire(of.misfire)}
	m.call("remind "+r.id+" again and again", r, setting{rule: of}, func(text string) error {
		return m.calls.SetEvery(m.sim.ctx, cart, r.name, rule, wrapperspb.String(text))
	})
}

// forget removes a reminder.
func (m *minder) forget(o Op) {
	r := m.pick(o)
	m.call("forget "+r.id, r, setting{}, func(string) error {
		exists := m.exists(r)
		found, err := m.calls.Forget(m.sim.ctx, cart, r.name)
		if err == nil && found != exists {
			m.sim.broken("answers", "forget %s: %t", r.id, found)
		}
		return err
	})
}

// call makes a call for a reminder, as its actor does: one after the other, and again while the
// network loses it or its answer, or its process dies. Each time it has another message.
func (m *minder) call(what string, r *reminded, to setting, do func(text string) error) {
	if !r.busy {
		r.busy = true
		m.attempt(what, r, to, do)
	}
}

func (m *minder) attempt(what string, r *reminded, to setting, do func(text string) error) {
	s := m.sim
	s.after(s.transit(), func() {
		lost := s.cut()
		if !lost {
			m.texts++
			text := fmt.Sprint("m", m.texts)
			if m.life.begin(immortal); s.faulty && s.chance(0.5) {
				m.life.begin(1 + s.random.IntN(8))
			}
			s.loseNext()
			err := do(text)
			m.life.begin(immortal)
			s.note("%s with %s: %v", what, text, err)
			m.learn(r, to, text)
			if lost = errors.Is(err, errDied); !lost {
				m.made(what, r, to, text, err)
				lost = s.cut()
			}
		}
		if lost {
			s.after(s.plan.Timeout, func() { m.attempt(what, r, to, do) })
			return
		}
		r.busy = false
	})
}

// readAll compares a listing.
func (m *minder) readAll() {
	var listed, known []string
	for state, err := range m.calls.List(m.sim.ctx, reminder.Recipient{}, wakebelltype.Page{}) {
		if err != nil {
			m.sim.broken("errors", "list the reminders: %v", err)
		}
		listed = append(listed, fmt.Sprint(state.Name, " ", state.RuleText != ""))
	}
	for _, r := range m.reminders {
		if m.timers[r.id] != nil {
			known = append(known, fmt.Sprint(r.name, " ", false))
		}
		if m.sim.schedules[r.schedule] != nil {
			known = append(known, fmt.Sprint(r.name, " ", true))
		}
	}
	slices.Sort(listed)
	slices.Sort(known)
	if !slices.Equal(listed, known) {
		m.sim.broken("answers", "the reminders are %q, expected %q", listed, known)
	}
}

// finish has a node deliver a reminder to its recipient, whose answer is the outcome.
func (m *minder) finish(p *poller, l *leasing.Lease, _ *run, o leasing.Outcome) {
	if o.Kind == leasing.Succeeded {
		o = m.deliverTo(l)
	}
	p.event(func(c *leasing.Core) { c.Finished(time.Now(), l, o) })
}

func (m *minder) deliverTo(l *leasing.Lease) leasing.Outcome {
	env, body := m.decode(l.Payload)
	t := hosted.Reminder{Body: body, Raw: env.Body, Activation: l.Activation, Attempt: l.Claims}
	for _, h := range env.Headers {
		switch h.Key {
		case firing.HeaderSchedule:
			t.Schedule = h.Value
		case firing.HeaderRun:
			t.Run, _ = strconv.ParseUint(h.Value, 10, 64)
		}
	}
	switch err := m.deliver(m.sim.ctx, t); {
	case err == nil:
		m.side.succeeded(l)
		return leasing.Outcome{}
	case errors.Is(err, errRejected):
		return leasing.Outcome{Kind: leasing.Rejected, Reason: "never"}
	default:
		return leasing.Outcome{Kind: leasing.Failed, Reason: err.Error()}
	}
}

// errRejected is the error of a reminder that its recipient does not want.
var errRejected = errors.New("rejected")

// Request is the recipient of all reminders. It implements [reminder.Cluster].
func (m *minder) Request(_ context.Context, _, _ string, message proto.Message) (any, error) {
	s, in := m.sim, message.(*wire.Reminder)
	m.arrives(in)
	switch chance := s.random.Float64(); {
	case !s.faulty || chance > 0.4:
		return in.Ack(), nil
	case chance < 0.15:
		return nil, reminder.ErrUnreachable
	case chance < 0.35:
		return in.Nack(errors.New("no")), nil
	default:
		return in.Reject(errors.New("never")), nil
	}
}

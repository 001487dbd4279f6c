package simulate

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/recur"
	wire "github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// setting is what there is of a reminder after a call.
type setting struct {
	once bool  // its timer
	rule *rule // that of its schedule; nil: it has none
}

var reminderBodies = codec.For[*wire.KeptReminder]()

// decode decodes the payload of a reminder.
func (m *minder) decode(payload []byte) (envelope.Envelope, *wire.KeptReminder) {
	env, err := envelope.Decode(payload)
	if err == nil {
		var body *wire.KeptReminder
		if body, err = reminderBodies.Decode(env.Body, env.ContentType); err == nil {
			return env, body
		}
	}
	m.sim.broken("payloads", "a reminder has the payload %q: %v", payload, err)
	return env, nil
}

// textOf returns the message of a reminder.
func (m *minder) textOf(body *wire.KeptReminder) string {
	text := new(wrapperspb.StringValue)
	if err := body.GetMessage().UnmarshalTo(text); err != nil {
		m.sim.broken("payloads", "the message of a reminder: %v", err)
	}
	return text.GetValue()
}

// exists reports whether there is a timer or a schedule of a reminder.
func (m *minder) exists(r *reminded) bool {
	return m.timers[r.id] != nil || m.sim.schedules[r.schedule] != nil
}

// learn notes what a call has written, which may have died on the way: what has its text is new.
// One that sets a reminder leaves the old one until there is the new one.
func (m *minder) learn(r *reminded, to setting, text string) {
	before := m.exists(r)
	m.learnTimer(r, to, text)
	m.learnSchedule(r, to, text)
	if forgets := to == (setting{}); before && !forgets && !m.exists(r) {
		m.sim.broken("reminders", "%s is gone, and the new one is not there", r.id)
	}
}

func (m *minder) learnTimer(r *reminded, to setting, text string) {
	s := m.sim
	t, err := m.store.Get(s.ctx, reminder.DefaultTopic, r.id)
	switch was := m.timers[r.id]; {
	case errors.Is(err, wakebelltype.ErrNotFound) && (was == nil || !to.once):
		delete(m.timers, r.id)
	case err != nil:
		s.broken("reminders", "%s is gone: %v", r.id, err)
	default:
		_, body := m.decode(t.Payload)
		if found := m.textOf(body); to.once && found == text {
			s.result.Scheduled++
			r.once = text
			m.timers[r.id] = &version{id: r.id, payload: string(t.Payload), due: t.Due}
			s.clients[0].hint(exchange.Hint{Kind: exchange.HintDue, In: max(t.Due.Sub(s.now()), 0), Sent: s.now()})
		} else if was == nil || found != r.once {
			s.broken("reminders", "%s has the message %s, expected %s", r.id, found, r.once)
		}
	}
}

// learnSchedule is learn for the schedule of a reminder. One that is set again with its rule goes
// on as it is.
func (m *minder) learnSchedule(r *reminded, to setting, text string) {
	s := m.sim
	found, err := s.beats[0].plain.Load(s.ctx, r.schedule)
	if err != nil {
		s.broken("errors", "load the schedule %s: %v", r.schedule, err)
	}
	ours, err := recur.ReadOurs(found[0].Ours)
	if err != nil {
		s.broken("errors", "read the schedule %s: %v", r.schedule, err)
	}
	was := s.schedules[r.schedule]
	if len(ours.Body) == 0 {
		if was != nil && to.rule != nil {
			s.broken("reminders", "the schedule of %s is gone", r.id)
		}
		delete(s.schedules, r.schedule)
		return
	}
	body, err := reminderBodies.Decode(ours.Body, ours.ContentType)
	if err != nil {
		s.broken("payloads", "the schedule of %s has the body %q: %v", r.id, ours.Body, err)
	}
	switch now := m.textOf(body); {
	case to.rule != nil && now == text:
		if r.every = text; was == nil || was.rule != to.rule {
			s.schedules[r.schedule] = &schedule{rule: to.rule, from: inMicros(s.now()), fired: map[int64]bool{}}
		}
		for _, b := range s.beats {
			b.hint()
		}
	case was == nil || now != r.every:
		s.broken("reminders", "the schedule of %s has the message %s, expected %s", r.id, now, r.every)
	}
}

// made checks what there is after a call that has not died.
func (m *minder) made(what string, r *reminded, to setting, text string, err error) {
	once, every := m.timers[r.id] != nil, m.sim.schedules[r.schedule] != nil
	switch {
	case err != nil:
		m.sim.broken("errors", "%s: %v", what, err)
	case once != to.once || every != (to.rule != nil) || once && r.once != text || every && r.every != text:
		m.sim.broken("reminders", "%s: there is a timer: %t, with %s, and a schedule: %t, with %s", what, once, r.once, every, r.every)
	}
}

// fired notes the runs that beats have fired.
func (m *minder) fired() {
	if m == nil {
		return
	}
	s := m.sim
	for page := (timers.Filter{}); ; {
		list, next, err := m.store.List(s.ctx, reminder.DefaultTopic, page)
		if err != nil {
			s.broken("errors", "list the reminders: %v", err)
		}
		for i := range list {
			if id := list[i].ID; m.timers[id] == nil && strings.Contains(id, "@") {
				m.run(id)
			}
		}
		if next == "" {
			return
		}
		page.After = next
	}
}

func (m *minder) run(id string) {
	s := m.sim
	t, err := m.store.Get(s.ctx, reminder.DefaultTopic, id)
	if err != nil {
		s.broken("errors", "get %s: %v", id, err)
	}
	due := s.judge.runFired(id)
	m.timers[id] = &version{id: id, payload: string(t.Payload), due: due}
	s.clients[0].hint(exchange.Hint{Kind: exchange.HintDue, Sent: s.now()})
}

// succeeded implements account: whether a delivery succeeds is said by its recipient.
func (m *minder) succeeded(*leasing.Lease) {}

// arrives checks a reminder that its recipient gets: a run only if its schedule is still there,
// and has the same message.
func (m *minder) arrives(in *wire.Reminder) {
	s, text := m.sim, m.textOf(&wire.KeptReminder{Message: in.GetMessage()})
	s.note("the reminder %s arrives, %s, run %d", in.GetName(), text, in.GetRun())
	s.result.Reminded++
	for _, r := range m.reminders {
		if r.name == in.GetName() && in.GetRun() > 0 && (s.schedules[r.schedule] == nil || text != r.every) {
			s.broken("reminders", "run %d of %s is delivered with %s, and its schedule has %s", in.GetRun(), r.id, text, r.every)
		}
	}
}

// left returns how many reminders have not ended, without runs.
func (m *minder) left() (n int) {
	if m == nil {
		return 0
	}
	for _, r := range m.reminders {
		if m.timers[r.id] != nil || r.busy {
			n++
		}
	}
	return n
}

// atRest checks that all were delivered.
func (m *minder) atRest() {
	if m == nil {
		return
	}
	for id, v := range m.timers {
		m.sim.broken("delivered", "the reminder %s waits for ever, due %v ago", id, m.sim.now().Sub(v.due))
	}
}

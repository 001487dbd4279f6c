package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// call is a call that schedules timers with joins, with an idempotency key.
type call struct {
	list   []joins.Timer
	places [2][]int // of the timers with joins, and of the others
	wrote  [2]effect
	begun  time.Time
	key    *timers.Key
	stored []wakebelltype.Scheduled // what became of the timers of list
}

// send schedules timers in the steps of a client, which may die between two of them. Some calls
// are made again as a whole: others may have replaced their joins by then.
func (w *workflow) send(what string, list []joins.Timer) {
	c := &call{list: list, stored: make([]wakebelltype.Scheduled, len(list)), begun: time.Now(), wrote: [2]effect{{sim: w.sim}, {sim: w.sim}}, key: timers.NewKey("workflow", w.id("key"), nil).Each()}
	for i := range list {
		group := 0
		if list[i].Name == "" {
			group = 1
		}
		c.places[group] = append(c.places[group], i)
	}
	w.attempt(what, c)
	if s := w.sim; s.faulty && s.chance(0.2) {
		s.after(time.Duration(s.random.IntN(600))*time.Second, func() { w.attempt(what+", again", c) })
	}
}

// attempt makes a call.
func (w *workflow) attempt(what string, c *call) {
	s := w.sim
	var plan joins.Plan
	w.steps(what, func() bool {
		var err error
		plan, err = w.api.Prepare(s.ctx, c.key, c.list)
		w.prepared(c, err)
		return err == nil
	}, func() bool {
		w.write(c, plan, 0)
		return true
	}, func() bool {
		w.write(c, plan, 1)
		return true
	}, func() bool {
		if err := w.finished(c.list, w.api.Finish(s.ctx, plan, c.stored)); err != nil {
			s.broken("errors", "%s: %v", what, err)
		}
		return true
	})
}

// prepared notes the joins of timers that are about to be scheduled.
func (w *workflow) prepared(c *call, err error) {
	for i := range c.list {
		t := &c.list[i]
		if t.Of != nil && i == 0 && !c.wrote[1].happened() { // all have the same one
			w.added(w.of(t.Of[0].ID), partsOf(c.list), err)
		}
		if t.Name == "" || c.wrote[0].happened() {
			continue
		}
		if j := w.of(t.ID); j.Name == t.Name {
			j.ran = false
			continue
		}
		if err != nil {
			w.sim.broken("errors", "a join of %s: %v", t.ID, err)
		}
		j := &join{
			Ref: joins.Ref{Topic: t.Topic, ID: t.ID, Name: t.Name}, open: true,
			added: map[string]time.Time{}, told: map[string]bool{}, ends: map[string]wakebelltype.End{},
		}
		w.joins[t.ID] = j
		w.added(j, t.Parts, nil)
	}
}

// added notes that parts were added to a join, or why not.
func (w *workflow) added(j *join, parts []wakebelltype.Part, err error) {
	further := slices.DeleteFunc(slices.Clone(parts), func(p wakebelltype.Part) bool { return slices.Contains(j.parts, p.ID) })
	switch {
	case errors.Is(err, wakebelltype.ErrNotFound) && w.over(j), errors.Is(err, wakebelltype.ErrInvalid) && !j.open && len(further) > 0:
	case err != nil:
		w.sim.broken("errors", "add %v to the join of %s, which is open: %t: %v", parts, j.ID, j.open, err)
	case !j.open && len(further) > 0:
		w.sim.broken("joins", "parts are added to the join of %s, which is closed", j.ID)
	}
	if err != nil {
		return
	}
	for _, p := range further {
		j.parts = append(j.parts, p.ID)
		j.added[p.ID] = w.sim.now()
	}
}

// finished notes the end of a call, and returns its error unless it has a reason.
func (w *workflow) finished(list []joins.Timer, err error) error {
	for i := range list {
		t := &list[i]
		if t.Name == "" {
			continue
		}
		j := w.of(t.ID)
		if j.Name != t.Name && errors.Is(err, wakebelltype.ErrNotFound) { // another one took its place, or Redis has lost it
			err = nil
		}
		current := err == nil && j.Name == t.Name
		if w.adopted(j, current, t.Parts); current && !t.Open && j.open {
			w.closes(j)
		}
	}
	return err
}

// write schedules the timers of a group of a call, which may be done.
func (w *workflow) write(c *call, plan joins.Plan, group int) {
	list, some, done := c.list, c.places[group], c.wrote[group].happened()
	if len(some) == 0 {
		return
	}
	s, b, entries := w.sim, timers.NewBatch("", len(some)), make([]timers.Entry, len(some))
	for k, i := range some {
		t := &list[i]
		payload, err := envelope.Encode(envelope.Envelope{Headers: joins.Headers(nil, t.Name, plan.Refs[i]...), Body: []byte(body(t.ID))})
		entries[k] = timers.Entry{ID: t.ID, Payload: payload, At: c.begun.Add(t.Life)}
		if err = errors.Join(err, b.Add(t.Topic, &entries[k])); err != nil {
			s.broken("errors", "schedule %s: %v", t.ID, err)
		}
	}
	out, err := w.store.Write(s.ctx, c.key, b)
	if err != nil {
		s.broken("errors", "schedule %s: %v", list[some[0]].ID, err)
	}
	for k, i := range some {
		c.stored[i] = out[k]
	}
	if done {
		return
	}
	c.wrote[group].note()
	for k, i := range some {
		id := list[i].ID
		s.note("%s is scheduled, with the join %q, as a part of %v", id, list[i].Name, plan.Refs[i])
		s.result.Scheduled++
		delete(w.ended, id)
		w.timers[id] = &version{id: id, payload: string(entries[k].Payload), due: out[k].Due}
		for _, r := range plan.Refs[i] {
			if j := w.of(r.ID); j.Ref == r && slices.Contains(j.parts, id) {
				j.told[id] = true
			}
		}
		if j := w.joins[id]; j != nil && j.Name == list[i].Name {
			j.timer = w.timers[id]
		}
		s.clients[0].hint(exchange.Hint{Kind: exchange.HintDue, In: max(out[k].Due.Sub(s.now()), 0), Sent: s.now()})
	}
}

// body is the body of a timer, which joins leave as it is.
func body(id string) string { return "of " + id }

// over reports whether the timer of a join has ended, or was never scheduled.
func (w *workflow) over(j *join) bool { return j.timer == nil || w.timers[j.ID] != j.timer }

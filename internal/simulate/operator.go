package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (c *client) redrive(o Op) {
	s := c.sim
	_, err := c.store.Redrive(s.ctx, topic, wakebelltype.RedriveOptions{Rate: 10_000, Overwrite: o.A%3 == 0, Each: func(l wakebelltype.RedrivenLetter) {
		s.note("redrive %s: %v", l.ID, l.Outcome)
		switch l.Outcome {
		case wakebelltype.RedriveSucceeded, wakebelltype.RedriveOverwrote:
			s.judge.redriven(l.ID, l.Outcome == wakebelltype.RedriveOverwrote)
		default:
			s.judge.skipped(l.ID)
		}
	}})
	if err != nil {
		s.broken("errors", "redrive: %v", err)
	}
	c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: c.sim.now()})
}

func (c *client) deleteDead() {
	n, err := c.store.DeleteDead(c.sim.ctx, topic, wakebelltype.DeadFilter{})
	if err != nil {
		c.sim.broken("errors", "delete dead letters: %v", err)
	}
	c.sim.note("deleted %d dead letters", n)
	c.sim.judge.deadDeleted(int(n))
}

// put stores a timer as an import does.
func (c *client) put(o Op) {
	s := c.sim
	at := time.Now().Add(s.delay(o.A)).Truncate(time.Microsecond)
	t := timers.Stored{ID: name(o.ID), Key: keyOf(o.ID), At: at, Due: at, Payload: s.judge.payload(), Number: int64(s.judge.payloads)}
	mode := []timers.PutMode{timers.PutKeep, timers.PutReplace, timers.PutTry}[o.B%3]
	existed, err := c.store.Put(s.ctx, topic, mode, []timers.Stored{t})
	if errors.Is(err, wakebelltype.ErrInvalid) && s.clients[0].resharding() {
		return
	}
	if err != nil {
		s.broken("errors", "import: %v", err)
	}
	if known := s.judge.current[t.ID] != nil; known != existed[0] {
		s.broken("answers", "the import says %v of whether %s existed", existed[0], t.ID)
	}
	if mode == timers.PutReplace || mode == timers.PutKeep && !existed[0] {
		s.judge.replaced(t.ID, t.Key, string(t.Payload), at)
		c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(at.Sub(s.now()), 0), Sent: c.sim.now()})
	}
}

// repair restores timers of which Redis has lost the places; most plans have none.
func (c *client) repair() {
	done, err := c.store.Repair(c.sim.ctx, topic, wakebelltype.RepairOptions{Apply: true, DropMissing: true})
	switch {
	case errors.Is(err, wakebelltype.ErrInvalid) && c.sim.clients[0].resharding():
	case err != nil:
		c.sim.broken("errors", "repair: %v", err)
	case c.sim.plan.Damages:
		c.sim.judge.repaired(c)
	case done.Restored+done.Missing > 0:
		c.sim.broken("answers", "a repair restores %d timers, and %d have no payload", done.Restored, done.Missing)
	}
}

// forget removes everything of the topic: settings of operators and the state of limits too.
func (c *client) forget() {
	if err := c.store.Forget(c.sim.ctx, topic); err != nil {
		c.sim.broken("errors", "forget: %v", err)
	}
	c.sim.judge.forgotten()
}

// removeTopic is refused while the topic has timers or dead letters.
func (c *client) removeTopic() {
	done, err := c.store.RemoveTopic(c.sim.ctx, topic)
	if err != nil {
		c.sim.broken("errors", "remove the topic: %v", err)
	}
	c.sim.note("remove the topic: existed %t, in use %q", done.Existed, done.Use)
	if done.Use == "" && c.sim.judge.pending()+c.sim.judge.letters() > 0 {
		c.sim.broken("nothing lost", "the topic is removed, with %d timers and %d dead letters", c.sim.judge.pending(), c.sim.judge.letters())
	}
	if done.Use == "" {
		c.sim.judge.forgotten()
	}
}

// pause pauses the topic, and resumes it after a while, unless the pause ends by itself.
func (c *client) pause(o Op) {
	s := c.sim
	if o.A%2 == 1 {
		lasts := time.Duration(o.B+1) * 100 * time.Millisecond
		if _, err := c.store.PauseUntil(s.ctx, topic, wakebelltype.Pause{By: "simulation", For: lasts}); err != nil {
			s.broken("errors", "pause for %v: %v", lasts, err)
		}
		c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: c.sim.now()})
		s.after(lasts, s.judge.ease)
		return
	}
	if _, err := c.store.Pause(s.ctx, topic, "simulation", ""); err != nil {
		s.broken("errors", "pause: %v", err)
	}
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: c.sim.now()})
	s.after(time.Duration(o.B)*100*time.Millisecond, c.resume)
}

func (c *client) resume() {
	if _, err := c.store.Resume(c.sim.ctx, topic); err != nil {
		c.sim.broken("errors", "resume: %v", err)
	}
	c.sim.judge.ease()
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: c.sim.now()})
}

func (c *client) retune(o Op) {
	s := c.sim
	set := s.plan.Shape.settings()[o.A%len(settings)].Public()
	if _, err := c.store.Retune(s.ctx, topic, set); err != nil {
		s.broken("errors", "retune: %v", err)
	}
	s.retuned = set
	s.judge.retuned(s.limits())
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: c.sim.now()})
}

// reshard changes the number of shards, in steps of a process that may die between any two of
// its commands.
func (c *client) reshard(o Op) {
	s := c.sim
	if s.clients[0].target == 0 {
		s.clients[0].target = 1 + o.A%3
	}
	s.judge.resharded()
	c.life.begin(immortal)
	if o.B%2 == 1 {
		c.life.begin(o.B / 3)
	}
	c.step(s.clients[0].target, new(shards.Progress))
}

// step makes a step of a resharding.
func (c *client) step(to int, p *shards.Progress) {
	s := c.sim
	if s.clients[0].target != to {
		return
	}
	s.reshaped = time.Now()
	wait, err := c.mortal.ReshardStep(s.ctx, topic, to, p)
	if errors.Is(err, errDied) {
		s.note("the resharding to %d dies", to)
		return
	}
	if err != nil {
		s.broken("errors", "reshard to %d: %v", to, err)
	}
	s.note("reshard to %d: moved %d, left %d, done %t", to, p.Moved, p.Left, p.Done)
	c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: s.now()}) // what has arrived may be due
	if p.Done {
		s.clients[0].target = 0
		s.judge.ease()
		return
	}
	s.after(max(wait, time.Millisecond), func() { c.step(to, p) })
}

func (c *client) resharding() bool { return c.target != 0 }

// calm ends what operators have begun.
func (c *client) calm() {
	c.resume()
	if c.target != 0 {
		c.life.begin(immortal)
		c.step(c.target, new(shards.Progress))
	}
}

// reshard gives a topic of parts another number of shards.
func (w *workflow) reshard(o Op) {
	if w.target == 0 {
		w.target = 1 + o.A%3
		w.reshardOn(w.target, new(shards.Progress))
	}
}

func (w *workflow) reshardOn(to int, p *shards.Progress) {
	s := w.sim
	if w.target != to {
		return
	}
	s.reshaped = time.Now()
	wait, err := w.store.ReshardStep(s.ctx, steps, to, p)
	switch {
	case err != nil:
		s.broken("errors", "reshard %s to %d: %v", steps, to, err)
	case p.Done:
		w.target = 0
	default:
		s.after(max(wait, time.Millisecond), func() { w.reshardOn(to, p) })
	}
}

// read compares what operators see with what there is. While timers move to other shards,
// those on their way are in no listing.
func (c *client) read(o Op) {
	if c.sim.clients[0].resharding() {
		return
	}
	c.readTimer(o)
	c.readTimers()
	c.readDead()
	c.readCounts()
}

func (c *client) readTimer(o Op) {
	s, id := c.sim, name(o.ID)
	found, err := c.store.Get(s.ctx, topic, id)
	v := s.judge.current[id]
	switch {
	case errors.Is(err, wakebelltype.ErrNotFound):
		s.judge.absent(id)
	case err != nil:
		s.broken("errors", "get: %v", err)
	case v == nil:
		s.broken("answers", "%s is found, and there is no such timer", id)
	case string(found.Payload) != v.payload || found.Running != v.leased(s.now()) && !v.vague(s.now()) || found.Key != v.key:
		s.broken("answers", "%s has payload %s, key %q, running %t; expected %+v", id, found.Payload, found.Key, found.Running, v)
	case !v.leased(s.now()) && !found.Parked && v.token == "" && !s.judge.dueAt(v, found.Due):
		s.broken("answers", "%s is due %v, expected %v", id, found.Due.Sub(s.begin), v.due.Sub(s.begin))
	}
}

func (c *client) readTimers() {
	s := c.sim
	var ids []string
	for after, more := timers.Cursor(""), true; more; more = after != "" {
		page, next, err := c.store.List(s.ctx, topic, timers.Filter{After: after, Limit: max(5, s.judge.pending()/20)})
		if err != nil {
			s.broken("errors", "list: %v", err)
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		after = next
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		s.broken("answers", "the list names an id twice: %q", ids)
	}
	whole := 0 // the others are in no listing
	for id, v := range s.judge.current {
		switch {
		case v.missing:
		case !has(ids, id):
			s.broken("answers", "%s is not listed", id)
		default:
			whole++
		}
	}
	if len(ids) != whole {
		s.broken("answers", "the list has %q, and there are %d timers", ids, whole)
	}
}

// has reports whether a sorted list has an id.
func has(sorted []string, id string) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}

func (c *client) readDead() {
	s := c.sim
	seen := 0
	for after, more := "", true; more; more = after != "" {
		page, next, err := c.store.DeadLetters(s.ctx, topic, wakebelltype.DeadFilter{}, after, max(3, min(s.judge.letters()/20, 200)))
		if err != nil {
			s.broken("errors", "dead letters: %v", err)
		}
		for i := range page {
			if seen++; !slices.ContainsFunc(s.judge.dead[page[i].ID], func(v *version) bool { return v.payload == string(page[i].Payload) && v.key == page[i].Key }) {
				s.broken("answers", "there is no such dead letter: %+v", page[i])
			}
		}
		after = next
	}
	if want := s.judge.letters(); seen != want {
		s.broken("answers", "%d dead letters, expected %d", seen, want)
	}
}

func (c *client) readCounts() {
	s := c.sim
	st, err := c.store.Stats(s.ctx, topic)
	if err != nil {
		s.broken("errors", "stats: %v", err)
	}
	leased, vague := 0, 0
	for _, v := range s.judge.current {
		switch {
		case v.vague(s.now()):
			vague++
		case v.leased(s.now()):
			leased++
		}
	}
	if sum := st.Pending + st.Due + st.Leased + st.Retrying + st.Parked; int(st.Total) != s.judge.pending() || sum != st.Total ||
		int(st.Leased) < leased || int(st.Leased) > leased+vague || int(st.Dead) != s.judge.letters() {
		s.broken("answers", "stats at %v: %+v; expected %d timers, %d leased, %d dead", time.Since(s.begin), st, s.judge.pending(), leased, s.judge.letters())
	}
}

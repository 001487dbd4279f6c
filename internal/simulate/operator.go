package simulate

import (
	"errors"
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
	c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: time.Now()})
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
		c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(time.Until(at), 0), Sent: time.Now()})
	}
}

// repair has nothing to do, because nothing was lost.
func (c *client) repair() {
	done, err := c.store.Repair(c.sim.ctx, topic, wakebelltype.RepairOptions{Apply: true, DropMissing: true})
	switch {
	case errors.Is(err, wakebelltype.ErrInvalid) && c.sim.clients[0].resharding():
	case err != nil:
		c.sim.broken("errors", "repair: %v", err)
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
		c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: time.Now()})
		s.after(lasts, s.judge.ease)
		return
	}
	if _, err := c.store.Pause(s.ctx, topic, "simulation", ""); err != nil {
		s.broken("errors", "pause: %v", err)
	}
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: time.Now()})
	s.after(time.Duration(o.B)*100*time.Millisecond, c.resume)
}

func (c *client) resume() {
	if _, err := c.store.Resume(c.sim.ctx, topic); err != nil {
		c.sim.broken("errors", "resume: %v", err)
	}
	c.sim.judge.ease()
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: time.Now()})
}

func (c *client) retune(o Op) {
	s := c.sim
	set := s.plan.Shape.settings()[o.A%len(settings)].Public()
	if _, err := c.store.Retune(s.ctx, topic, set); err != nil {
		s.broken("errors", "retune: %v", err)
	}
	s.retuned = set
	s.judge.retuned(s.limits())
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: time.Now()})
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
		w.reshardOn(new(shards.Progress))
	}
}

func (w *workflow) reshardOn(p *shards.Progress) {
	s := w.sim
	s.reshaped = time.Now()
	wait, err := w.store.ReshardStep(s.ctx, steps, w.target, p)
	switch {
	case err != nil:
		s.broken("errors", "reshard %s to %d: %v", steps, w.target, err)
	case p.Done:
		w.target = 0
	default:
		s.after(max(wait, time.Millisecond), func() { w.reshardOn(p) })
	}
}

package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// kind is a kind of operation. Its weight says how often it is drawn.
type kind struct {
	name   string
	weight int
	always bool // in every plan
	do     func(s *sim, o Op)
}

// kinds are all operations: those of users and operators, and what happens to processes.
var kinds []kind

func init() { // in a function, because operations name their kinds
	kinds = []kind{
		{"schedule", 8, true, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{}) }},
		{"schedule with keep", 1, false, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Policy: wakebelltype.PolicyKeep}) }},
		{"schedule with earliest", 1, false, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Policy: wakebelltype.PolicyEarliest}) }},
		{"debounce", 2, false, func(s *sim, o Op) { s.client(o).debounce(o) }},
		{"schedule once", 2, false, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Once: windows[o.B%len(windows)]}) }},
		{"cancel", 2, false, func(s *sim, o Op) { s.client(o).cancel(o) }},
		{"cancel all", 1, false, func(s *sim, o Op) { s.client(o).cancelAll() }},
		{"reschedule", 1, false, func(s *sim, o Op) { s.client(o).reschedule(o) }},
		{"run now", 1, false, func(s *sim, o Op) { s.client(o).runNow(o) }},
		{"redrive", 1, false, func(s *sim, o Op) { s.client(o).redrive() }},
		{"delete dead", 1, false, func(s *sim, o Op) { s.client(o).deleteDead() }},
		{"pause", 1, false, func(s *sim, o Op) { s.client(o).pause(o) }},
		{"retune", 1, false, func(s *sim, o Op) { s.client(o).retune(o) }},
		{"reshard", 1, false, func(s *sim, o Op) { s.client(o).reshard(o) }},
		{"crash", 1, false, func(s *sim, o Op) { s.node(o).crash(time.Duration(o.B) * 100 * time.Millisecond) }},
		{"stall", 1, false, func(s *sim, o Op) { s.node(o).stall(time.Duration(o.B) * 200 * time.Millisecond) }},
		{"flush scripts", 1, false, func(s *sim, _ Op) { s.flushScripts() }},
		{"wait", 1, false, func(s *sim, o Op) { s.until(time.Now().Add(time.Duration(o.B) * time.Second)) }},
	}
}

func (s *sim) client(o Op) *client { return s.clients[o.Client%len(s.clients)] }
func (s *sim) node(o Op) *node     { return s.nodes[o.A%len(s.nodes)] }

// flushScripts has Redis forget its scripts, as a restart does.
func (s *sim) flushScripts() {
	if err := s.rdb.ScriptFlush(s.ctx).Err(); err != nil {
		s.broken("errors", "flush scripts: %v", err)
	}
}

// stall has the process stand still for a while.
func (n *node) stall(d time.Duration) {
	n.sim.note("%s stalls for %v", n.name, d)
	n.stalled = time.Now().Add(d)
	n.sim.judge.stalls(n)
}

// client is a process that makes calls.
type client struct {
	sim    *sim
	number int
	store  *shards.Store
	calls  int
	target int // of a change of the layout; 0: none
}

// call makes a call with an idempotency key. The network may lose the request or the answer;
// then it is made again, with the same key.
func (c *client) call(what string, do func(key *timers.Key) error) {
	c.calls++
	key := timers.NewKey("simulation", fmt.Sprint(c.number, "-", c.calls), []byte(what))
	var try func()
	try = func() {
		s := c.sim
		if s.cut() {
			s.note("%s: the request is lost", what)
			s.after(s.plan.Timeout, try)
			return
		}
		if err := do(key); err != nil {
			s.broken("errors", "%s: %v", what, err)
		}
		if s.cut() {
			s.note("%s: the answer is lost", what)
			s.after(s.plan.Timeout, try)
		}
	}
	try()
}

func name(id int) string { return "id" + strconv.Itoa(id) }

// keyOf returns the key with which an id is scheduled; a third of the ids have none.
func keyOf(id int) string {
	if id%3 == 0 {
		return ""
	}
	return "k" + strconv.Itoa(id%keys)
}

// delays are the delays of timers.
var delays = []time.Duration{-time.Minute, 0, 0, 0, 10 * time.Millisecond, time.Second, 5 * time.Second, time.Minute}

// windows are for how long an id with Once fires once.
var windows = []time.Duration{time.Second, 30 * time.Second, time.Hour}

// debounce schedules a timer whose instant moves with each call, up to a bound.
func (c *client) debounce(o Op) {
	in := []time.Duration{10 * time.Millisecond, time.Second, 5 * time.Second}[o.A%3]
	most := []time.Duration{0, in, 3 * in}[o.B%3]
	c.schedule(o, timers.Entry{Policy: wakebelltype.PolicyDebounce, In: in, MaxDelay: most})
}

// schedule schedules the timer of an operation as e says.
func (c *client) schedule(o Op, e timers.Entry) {
	s := c.sim
	e.ID, e.Key, e.Payload = name(o.ID), keyOf(o.ID), s.judge.payload()
	if e.Policy != wakebelltype.PolicyDebounce {
		e.At = time.Now().Add(delays[o.A%len(delays)])
	}
	done := false
	c.call(fmt.Sprintf("schedule %s %s", e.ID, e.Payload), func(key *timers.Key) error {
		b := timers.NewBatch("", 1)
		if err := b.Add(topic, &e); err != nil {
			return err
		}
		out, err := c.store.Write(s.ctx, key, b)
		if err != nil || done {
			return err
		}
		done = true
		s.result.Scheduled++
		s.note("%s: %v, due in %v", e.ID, out[0].Outcome, time.Until(out[0].Due))
		s.judge.scheduled(&e, out[0])
		c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(time.Until(out[0].Due), 0), Sent: time.Now()})
		c.hint(exchange.Hint{Kind: exchange.HintCheck, ID: e.ID, Sent: time.Now()})
		return nil
	})
}

// hint has the channels of Redis carry a hint to all nodes; it may get lost.
func (c *client) hint(h exchange.Hint) {
	s := c.sim
	for _, n := range s.nodes {
		if !s.cut() {
			n.after(s.transit(), func() { n.hint(h) })
		}
	}
}

func (c *client) cancel(o Op) {
	s, done := c.sim, false
	c.call("cancel "+name(o.ID), func(key *timers.Key) error {
		found, err := c.store.CancelKeyed(s.ctx, topic, key, name(o.ID))
		if err != nil || done {
			return err
		}
		done = true
		s.note("%s: %v", name(o.ID), found[0])
		s.judge.cancelled(name(o.ID), found[0])
		c.hint(exchange.Hint{Kind: exchange.HintCheck, ID: name(o.ID), Sent: time.Now()})
		return nil
	})
}

func (c *client) cancelAll() {
	n, err := c.store.CancelAll(c.sim.ctx, topic)
	if err != nil {
		c.sim.broken("errors", "cancel all: %v", err)
	}
	c.sim.note("cancelled %d", n)
	c.sim.judge.cancelledAll(int(n))
	c.hint(exchange.Hint{Kind: exchange.HintCheck, Sent: time.Now()})
}

func (c *client) reschedule(o Op) {
	s := c.sim
	out, err := c.store.Reschedule(s.ctx, topic, name(o.ID), time.Now().Add(delays[o.A%len(delays)]), 0)
	if errors.Is(err, wakebelltype.ErrNotFound) {
		s.judge.absent(name(o.ID))
		return
	}
	if err != nil {
		s.broken("errors", "reschedule: %v", err)
	}
	s.judge.rescheduled(name(o.ID), out.Due)
	c.hint(exchange.Hint{Kind: exchange.HintCheck, ID: name(o.ID), Sent: time.Now()})
	c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(time.Until(out.Due), 0), Sent: time.Now()})
}

func (c *client) runNow(o Op) {
	s := c.sim
	found, err := c.store.RunNow(s.ctx, topic, name(o.ID))
	if errors.Is(err, wakebelltype.ErrNotFound) || found == wakebelltype.PresenceAbsent {
		s.judge.absent(name(o.ID))
		return
	}
	if err != nil {
		s.broken("errors", "run now: %v", err)
	}
	s.judge.runNow(name(o.ID))
	c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: time.Now()})
}

func (c *client) redrive() {
	s := c.sim
	_, err := c.store.Redrive(s.ctx, topic, wakebelltype.RedriveOptions{Rate: 10_000, Each: func(l wakebelltype.RedrivenLetter) {
		s.note("redrive %s: %v", l.ID, l.Outcome)
		if l.Outcome == wakebelltype.RedriveSucceeded {
			s.judge.redriven(l.ID)
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
}

// pause pauses the topic, and resumes it after a while.
func (c *client) pause(o Op) {
	s := c.sim
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
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: time.Now()})
}

func (c *client) retune(o Op) {
	s := c.sim
	set := settings[o.A%len(settings)].Public()
	if _, err := c.store.Retune(s.ctx, topic, set); err != nil {
		s.broken("errors", "retune: %v", err)
	}
	s.judge.retuned()
	c.hint(exchange.Hint{Kind: exchange.HintControl, Sent: time.Now()})
}

// reshard changes the number of shards, in steps of a process that may die.
func (c *client) reshard(o Op) {
	s := c.sim
	if s.clients[0].target == 0 {
		s.clients[0].target = 1 + o.A%3
	}
	s.judge.resharded()
	steps := o.B
	if o.B%2 == 0 {
		steps = 10_000
	}
	c.step(s.clients[0].target, steps, new(shards.Progress))
}

func (c *client) step(to, left int, p *shards.Progress) {
	s := c.sim
	if left == 0 || s.clients[0].target != to {
		return
	}
	wait, err := c.store.ReshardStep(s.ctx, topic, to, p)
	if err != nil {
		s.broken("errors", "reshard to %d: %v", to, err)
	}
	s.note("reshard to %d: moved %d, left %d, done %t", to, p.Moved, p.Left, p.Done)
	if p.Done {
		s.clients[0].target = 0
		return
	}
	s.after(max(wait, time.Millisecond), func() { c.step(to, left-1, p) })
}

func (c *client) resharding() bool { return c.target != 0 }

// calm ends what operators have begun.
func (c *client) calm() {
	c.resume()
	if c.target != 0 {
		c.step(c.target, 100_000, new(shards.Progress))
	}
}

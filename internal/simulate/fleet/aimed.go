package fleet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
)

// Operations that aim at moments which are rare in drawn plans.

// room is for how long the faults of an operation may last: not longer than there are faults, unless
// it has the end of the plan for itself.
func (f *fleet) room(o Op) time.Duration {
	if o.kind.aimed {
		return aimEvery
	}
	return max(time.Until(f.calm), 0)
}

// scheduleSideBySide schedules timers that are due a millisecond apart: while the first one is
// claimed, the others are almost due.
func (f *fleet) scheduleSideBySide(o Op) {
	run := f.nodes[o.A%len(f.nodes)].running()
	if run == nil {
		return
	}
	topic := topics[o.B%len(topics)]
	var drafts []wakebell.Draft
	var writes []*write
	for i := range 6 {
		t := timer{topic: topic, body: fmt.Sprintf("%s-%d", o.body(), i), in: f.plan.delay(o) + time.Duration(i)*time.Millisecond}
		drafts = append(drafts, t.draft())
		writes = append(writes, f.writing(subjectOf(topic, ""), t.body, "", "a node", t.in))
	}
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	all, err := run.sys.Client().Schedule(ctx, drafts...)
	for i, w := range writes {
		a := answer{}
		if err == nil {
			a.due = all[i].Due
		}
		f.wrote(w, a, err, f.nodes[o.A%len(f.nodes)].running() == run)
	}
}

// turnOverLateLink takes a turn of a gate over a link whose answers are late, at a node that dies
// after the turn was extended, or is cut off from Redis: it still answers then, but its lease in Redis
// is not extended any more while an answer is on its way. All other nodes wait for the gate meanwhile.
func (f *fleet) turnOverLateLink(o Op) {
	c := f.clients[o.A%len(f.clients)]
	s := c.running()
	if s == nil || f.room(o) < 2*leaseTTL {
		return
	}
	back := f.net.path(s.node.host, c.host)
	dies := o.Number%2 == 0
	defer f.fault("the link between %s and %s is late, and then %s loses Redis or dies", c.name(), s.node.name(), s.node.name())()
	if dies {
		back.slow(time.Duration(8+o.C%5) * leaseTTL / 40)
	}
	defer back.slow(0)
	name := "gate-" + strconv.Itoa(2+o.Number)
	ctx, cancel := context.WithTimeout(f.ctx, leaseTTL)
	defer cancel()
	held, err := s.remote.Gates().Acquire(ctx, name)
	if err != nil {
		f.trace("%s: no turn at %s: %v", c.name(), name, err)
		return
	}
	f.beginTurn(name, c.name(), held)
	for _, n := range f.nodes {
		if run := n.running(); run != nil && n != s.node {
			go f.waitForTurn(name, n.name(), run.sys.Gates())
		}
	}
	<-time.After(leaseTTL / 2)
	if dies {
		s.node.crash()
		defer func() { f.check(s.node.start(), "start a node") }()
	} else { // an answer that takes longer than a fifth of the lease may come too late to extend the turn
		back.slow(time.Duration(70+o.C%10) * leaseTTL / 400)
		defer f.net.separate(s.node.host, f.store.at.Addr())()
	}
	select {
	case <-held.Context().Done():
	case <-time.After(min(2*leaseTTL, f.room(o))):
	}
	go func() {
		ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
		defer cancel()
		_ = held.Release(ctx) // it may be lost
	}()
}

// waitForTurn waits for a turn and releases it.
func (f *fleet) waitForTurn(name, at string, gates gate.Locker) {
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	held, err := gates.Acquire(ctx, name)
	if err != nil {
		f.trace("%s: no turn at %s: %v", at, name, err)
		return
	}
	t := f.beginTurn(name, at, held)
	f.endTurn(t)
	_ = held.Release(ctx) // it may be lost
}

// errands is the topic of a client, to which no other one subscribes.
func (c *client) errands() string { return errands + strconv.Itoa(c.number) }

// errands is what those topics begin with.
const errands = "errands-"

// leaveWithoutRedis ends a subscription while Redis is away, and one of its verdicts cannot be stored:
// the node waits with the end of the topic, and the client subscribes again before it has ended. What
// comes once Redis is back reaches the subscription.
func (f *fleet) leaveWithoutRedis(o Op) {
	c, n := f.clients[o.A%len(f.clients)], f.nodes[o.B%len(f.nodes)]
	s, run := c.running(), n.running()
	if s == nil || run == nil || f.room(o) < leaseTTL {
		return
	}
	errand := func(body string) {
		t := timer{topic: c.errands(), body: body}
		w := f.writing(subjectOf(t.topic, ""), t.body, "", n.name(), 0)
		ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
		defer cancel()
		a, err := timers{run.sys.Client()}.schedule(ctx, t)
		f.wrote(w, a, err, n.running() == run)
	}
	errand(o.body())
	for limit := time.Now().Add(leaseTTL); f.runsOf(o.body()) == 0 && time.Now().Before(limit); {
		<-time.After(10 * time.Millisecond)
	}
	mended := f.fault("Redis is away, and %s leaves its topic", c.name())
	f.store.goAway()
	<-time.After(errandTakes)
	s.leave()
	<-time.After(min(leaseTTL+time.Duration(o.C)*leaseTTL/25, f.room(o)))
	f.store.comeBack()
	mended()
	<-time.After(leaseTTL)
	errand(o.body() + "-again") // which is left if the subscription is forgotten
}

// errandTakes is how long the handler of an errand takes: its verdict comes while Redis is away.
const errandTakes = time.Second

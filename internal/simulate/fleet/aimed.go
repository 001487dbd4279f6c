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
// after the turn was extended. All other nodes wait for the gate meanwhile.
func (f *fleet) turnOverLateLink(o Op) {
	c := f.clients[o.A%len(f.clients)]
	s := c.running()
	if s == nil || time.Until(f.calm) < 2*leaseTTL {
		return
	}
	back := f.net.path(s.node.host, c.host)
	defer f.fault("the link between %s and %s is late, and then %s dies", c.name(), s.node.name(), s.node.name())()
	back.slow(time.Duration(8+o.C%5) * leaseTTL / 40)
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
	s.node.crash()
	defer func() { f.check(s.node.start(), "start a node") }()
	select {
	case <-held.Context().Done():
	case <-time.After(min(2*leaseTTL, max(time.Until(f.calm), 0))):
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
func (c *client) errands() string { return "errands-" + strconv.Itoa(c.number) }

// leaveWithoutRedis ends a subscription while Redis is away, and one of its verdicts cannot be stored:
// the node waits with the end of the topic, and the client subscribes again before it has ended.
func (f *fleet) leaveWithoutRedis(o Op) {
	c, n := f.clients[o.A%len(f.clients)], f.nodes[o.B%len(f.nodes)]
	s, run := c.running(), n.running()
	if s == nil || run == nil || time.Until(f.calm) < leaseTTL {
		return
	}
	t := timer{topic: c.errands(), body: o.body()}
	w := f.writing(subjectOf(t.topic, ""), t.body, "", n.name(), 0)
	a, err := timers{run.sys.Client()}.schedule(f.ctx, t)
	f.wrote(w, a, err, n.running() == run)
	<-time.After(time.Duration(1+o.C%5) * 100 * time.Millisecond)
	defer f.fault("Redis is away, and %s leaves its topic", c.name())()
	f.store.goAway()
	defer f.store.comeBack()
	<-time.After(time.Second)
	s.leave()
	<-time.After(min(leaseTTL+time.Duration(o.C)*leaseTTL/25, max(time.Until(f.calm), 0)))
}

package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
)

// follows is how often a node looks for changes of the layout, as a System does, and idle how
// often when there will be none.
const follows, idle = 2 * time.Second, time.Minute

// seldom is by how much less often a node looks, and sweeps, in plans of Days: a month of it would
// take minutes, and show nothing.
const seldom = 10

// node is a process with a poller for each physical topic.
type node struct {
	sim    *sim
	number int
	name   string
	store  *shards.Store

	life    int // rises with each end of the process: what was sent before is not answered
	down    bool
	leaving bool      // it drains
	stalled time.Time // until when its process stands still
	pollers []*poller
	names   int

	travels  [2][]*poller     // of the topic that moves, in both Redis
	journeys [2]*shards.Store // for it
	consumer *poller          // of the queue; nil: there is none
	flows    [3][]*poller     // of timers that wait for others, or of reminders
	audits   int              // the life in which the node audits joins, and 1
	flow     exchange.Flow    // with which it has started

	supervisors [2]*supervisor // of the pollers of each Redis
}

func newNode(s *sim, number int) *node {
	n := &node{sim: s, number: number, name: fmt.Sprint("n", number)}
	n.start()
	return n
}

// start starts the process.
func (n *node) start() {
	n.down, n.leaving, n.stalled, n.flow = false, false, time.Time{}, n.sim.flow
	n.store = n.sim.store(n.sim.rdb)
	n.supervisors = [2]*supervisor{{node: n}, {node: n, second: true}}
	n.follow()
	n.consume()
}

// crash ends the process: its handlers too. It starts again after a while.
func (n *node) crash(again time.Duration) {
	if n.down {
		return
	}
	n.sim.note("%s crashes", n.name)
	for _, p := range n.all() {
		p.end()
	}
	n.life++
	n.down = true
	n.forget()
	life := n.life
	n.sim.after(again, func() {
		if n.down && n.life == life {
			n.start()
		}
	})
}

// forget forgets the pollers of a process that has ended.
func (n *node) forget() {
	n.pollers, n.travels, n.journeys, n.consumer, n.flows = nil, [2][]*poller{}, [2]*shards.Store{}, nil, [3][]*poller{}
}

// after has something happen in this process: not if it has ended by then, and later if it
// stands still.
func (n *node) after(d time.Duration, do func()) {
	life := n.life
	n.sim.after(d, func() {
		switch wait := time.Until(n.stalled); {
		case n.life != life || n.down:
		case wait > 0:
			n.after(wait, do)
		default:
			do()
		}
	})
}

// follow starts and ends pollers as the layout says, and looks again later.
func (n *node) follow() {
	ctx, s := n.sim.ctx, n.sim
	switch {
	case s.plan.Shape == Days && time.Since(s.reshaped) > idle:
		n.after(seldom*idle, n.follow)
	case s.done:
		n.after(idle, n.follow)
	default:
		n.after(follows, n.follow)
	}
	if n.leaving || s.cut() {
		return
	}
	if _, err := s.attempt(func() error { return n.settle(ctx) }); err != nil {
		s.note("%s follows: %v", n.name, err)
		return
	}
	n.track(&n.pollers, n.store, topic, func(*poller) {})
	if s.journey != nil {
		s.journey.poll(n)
	}
	if s.workflow != nil {
		s.workflow.poll(n)
	}
	if s.minder != nil {
		s.minder.poll(n)
	}
}

// track starts and ends pollers of a topic, which set sets up.
func (n *node) track(pollers *[]*poller, store *shards.Store, topic string, set func(*poller)) {
	ctx, s := n.sim.ctx, n.sim
	names, err := store.Polled(ctx, topic)
	if err != nil {
		s.note("%s polled: %v", n.name, err)
		return
	}
	parts, err := store.Parts(ctx, topic)
	if err != nil {
		s.note("%s parts: %v", n.name, err)
		return
	}
	for _, name := range names {
		if at := slices.IndexFunc(*pollers, func(p *poller) bool { return p.name == name }); at >= 0 {
			(*pollers)[at].share(len(names), parts[name])
		} else {
			*pollers = append(*pollers, newPoller(n, store, name, len(names), parts[name], set))
		}
	}
	*pollers = slices.DeleteFunc(*pollers, func(p *poller) bool {
		gone := !slices.Contains(names, p.name) && p.core.Leases() == 0
		if gone {
			p.end()
		}
		return gone
	})
}

// all returns the pollers, with the consumer of the queue.
func (n *node) all() []*poller {
	all := slices.Concat(n.pollers, n.travels[0], n.travels[1], n.flows[0], n.flows[1], n.flows[2])
	if n.consumer != nil {
		all = append(all, n.consumer)
	}
	return all
}

// hint passes a hint to all pollers, as the channels of Redis do.
func (n *node) hint(h exchange.Hint) {
	for _, p := range n.all() {
		p.event(func(c *leasing.Core) { c.Hint(time.Now(), h) })
	}
}

// source is what a poller claims from.
type source interface {
	Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error)
	RemoveOrphans(ctx context.Context) (exchange.Swept, error)
}

// account is the part of the judge that checks what a poller does.
type account interface {
	exchanged(r *exchange.Request, reply *exchange.Reply)
	begins(p *poller, l *leasing.Lease, r *run)
	succeeded(l *leasing.Lease)
}

// ender is an account that ends handlers by itself.
type ender interface {
	finish(p *poller, l *leasing.Lease, r *run, o leasing.Outcome)
}

// poller is a poller with its handlers.
type poller struct {
	*node
	name    string
	life    int // rises when it ends
	drained bool
	second  bool // of the Redis to which a topic moves
	source  source
	timers  *timers.TimerSource // nil: of a queue
	account account
	limits  *exchange.Flow // other ones than those of the node; nil: those
	core    *leasing.Core
	watch   *leasing.Watch // nil: none runs
	peekAt  time.Time      // of its next peek; zero: one is in flight
	shards  int
	part    sharding.Part

	sweeps      int
	wakes       int // the number of the last tick that was asked for
	concurrency int
	running     int
	queue       []*leasing.Lease
	handling    []*leasing.Lease
}

func newPoller(n *node, store *shards.Store, name string, shards int, part sharding.Part, set func(*poller)) *poller {
	of := store.Timers().Source(name, timers.SourceOptions{KeyWeights: fmt.Sprint(weighted, "=", weight)})
	p := &poller{node: n, name: name, source: of, timers: of, account: n.sim.judge, shards: shards, part: part}
	set(p)
	p.core = leasing.New(leasing.Config{
		Policy: &leasing.Policy{Window: leasing.AutomaticWindow, OverrideInterval: n.sim.plan.Shape.looks(), KeyRun: n.keyRun()}, Effects: p, Counters: &observe.Counters{}, Guards: &leasing.Guards{},
		Topic: name, Random: n.sim.random.Float64, Wake: func() {}, Overrides: true, Peeks: true, Snoozes: true,
		NewName: p.newName,
	})
	p.core.Start(time.Now(), new(p.settings()), false)
	p.advance()
	return p
}

// newName names an incarnation.
func (p *poller) newName() string {
	p.names++
	return fmt.Sprint(p.node.name, ".", p.node.life, ".", p.name, ".", p.names)
}

func (p *poller) settings() leasing.Settings {
	s := p.sim.plan.Settings
	if p.timers == nil { // a queue has neither keys nor shards
		s.Flow = exchange.Flow{MaxInFlight: s.Flow.MaxInFlight}
		return s
	}
	s.Flow, s.Shards, s.Part = p.flow, p.shards, p.part
	if p.limits != nil {
		s.Flow = *p.limits
	}
	return s
}

// share applies the part of the limits that the poller has.
func (p *poller) share(shards int, part sharding.Part) {
	if p.shards == shards && p.part == part {
		return
	}
	p.shards, p.part = shards, part
	p.event(func(c *leasing.Core) { c.Apply(time.Now(), new(p.settings()), false) })
}

// end ends the poller without a drain.
func (p *poller) end() {
	p.core.Stop()
	p.life++
	p.handling, p.queue = nil, nil
}

// later has something happen in this poller, unless it has ended by then.
func (p *poller) later(d time.Duration, do func()) {
	life := p.life
	p.after(d, func() {
		if p.life == life {
			do()
		}
	})
}

// event passes an event to the core.
func (p *poller) event(do func(*leasing.Core)) {
	do(p.core)
	p.advance()
}

// advance lets the core act, and its handlers.
func (p *poller) advance() {
	wake := p.core.Advance(time.Now())
	p.handle()
	if wake.IsZero() {
		return
	}
	p.wakes++
	this := p.wakes
	p.later(max(time.Until(wake), 0), func() {
		if p.wakes == this { // otherwise the timer was set again
			p.event((*leasing.Core).Tick)
		}
	})
}

// handle runs the handlers that are free.
func (p *poller) handle() {
	for p.running < p.concurrency && len(p.queue) > 0 {
		l := p.queue[0]
		p.queue = p.queue[1:]
		p.running++
		r := l.Run.(*run)
		r.begun = true
		p.handling = append(p.handling, l)
		p.sim.note("%s begins %s %s, claim %d", p.node.name, l.ID, l.Payload, l.Claims)
		p.account.begins(p, l, r)
		takes := p.sim.between(0, 50*time.Millisecond)
		if p.sim.faulty && p.sim.chance(0.05) {
			takes = p.sim.between(0, 4*p.sim.plan.Settings.LeaseTTL)
		}
		p.checkpoints(l, r, takes)
		p.later(takes, func() { p.finish(l, r) })
	}
}

// finish ends a handler.
func (p *poller) finish(l *leasing.Lease, r *run) {
	s := p.sim
	p.handling = slices.DeleteFunc(p.handling, func(other *leasing.Lease) bool { return other == l })
	if !r.abandoned {
		p.running--
	}
	outcome, snoozes := p.snooze()
	switch chance := s.random.Float64(); {
	case snoozes:
	case r.cause != nil && chance < 0.5:
		outcome = leasing.Outcome{Kind: leasing.Failed, Reason: "interrupted"}
	case s.faulty && chance < 0.08:
		outcome = leasing.Outcome{Kind: leasing.Failed, Reason: "no"}
	case s.faulty && chance < 0.09:
		outcome = leasing.Outcome{Kind: leasing.Crashed}
	case s.faulty && chance < 0.10:
		outcome = leasing.Outcome{Kind: leasing.Panicked, Reason: "panic"}
	case s.faulty && chance < 0.11:
		outcome = leasing.Outcome{Kind: leasing.Rejected, Reason: "never"}
	case s.faulty && chance < 0.11+s.plan.Release:
		outcome = leasing.Outcome{Kind: leasing.Released}
	default:
		p.account.succeeded(l)
	}
	s.note("%s ends %s: %d", p.node.name, l.ID, outcome.Kind)
	if of, ends := p.account.(ender); ends {
		of.finish(p, l, r, outcome)
		return
	}
	p.event(func(c *leasing.Core) { c.Finished(time.Now(), l, outcome) })
}

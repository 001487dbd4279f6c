package leasing

import (
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// simNode is a node of a simulation: the caller of a core, with handlers.
type simNode struct {
	sim      *sim
	name     string
	settings Settings
	window   time.Duration

	core    *Core
	life    int // rises with each crash: answers to what was sent before are dropped
	names   int
	wakes   int // the number of the last tick that was asked for
	sent    map[int]*Flight
	drained bool

	concurrency int
	running     int
	queue       []*Lease
	handled     map[*Lease]bool
}

// start starts a node, at first and after a crash.
func (n *simNode) start() {
	n.handled, n.sent = map[*Lease]bool{}, map[int]*Flight{}
	n.core = New(Config{
		Policy: &Policy{Window: n.window}, Effects: n, Counters: &observe.Counters{}, Guards: &Guards{}, Topic: "t",
		Random: n.sim.random.Float64, Wake: func() {},
		NewName: func() string {
			n.names++
			return fmt.Sprint(n.name, "-", n.names)
		},
	})
	n.core.Start(n.sim.now, &n.settings, false)
	n.advance()
}

// event passes an event to the core.
func (n *simNode) event(do func(*Core)) {
	do(n.core)
	n.advance()
}

// advance lets the core act, and its handlers.
func (n *simNode) advance() {
	s, life := n.sim, n.life
	wake := n.core.Advance(s.now)
	n.handle()
	if wake.IsZero() {
		return
	}
	n.wakes++
	this := n.wakes
	s.after(max(wake.Sub(s.now), 0), func() {
		if n.life == life && n.wakes == this { // otherwise the timer was set again
			n.event((*Core).Tick)
		}
	})
}

// wanted is the number of timers that flights claim.
func (n *simNode) wanted() (want int) {
	for _, f := range n.sent {
		if f != nil {
			want += f.Request.Want
		}
	}
	return want
}

func (n *simNode) Open(int)                         {}
func (n *simNode) Watch(*Watch)                     {}
func (n *simNode) EndWatch() (next time.Time)       { return next }
func (n *simNode) ReadOverride()                    {}
func (n *simNode) Announce(exchange.AnnounceAction) {}
func (n *simNode) AskForHelp(int)                   {}
func (n *simNode) Report(bool)                      {}
func (n *simNode) RemoveOrphans()                   {}

// Tell is the supervisor, which has the node probe after a while.
func (n *simNode) Tell(a Availability, _ error) {
	if a == Available {
		return
	}
	s, life := n.sim, n.life
	s.after(s.between(10*time.Millisecond, time.Second), func() {
		if n.life == life {
			n.event((*Core).Probe)
		}
	})
}

func (n *simNode) Drained([]string, int) { n.drained = true }

func (n *simNode) NewLease(claimed *exchange.Lease, _ time.Time) *Lease {
	l := &Lease{Lease: claimed}
	l.Run = &simRun{node: n, lease: l}
	return l
}

func (n *simNode) Push(l *Lease) { n.queue = append(n.queue, l) }
func (n *simNode) Pushed(int)    {}

func (n *simNode) TakeBack(most int) []*Lease {
	from := max(len(n.queue)-most, 0)
	taken := slices.Clone(n.queue[from:])
	n.queue = n.queue[:from]
	return taken
}

func (n *simNode) Oldest() (at time.Time) {
	if len(n.queue) > 0 {
		at = n.queue[0].Queued
	}
	return at
}

func (n *simNode) Occupied() int                         { return 0 }
func (n *simNode) Tune(concurrency int, _ time.Duration) { n.concurrency = concurrency }

func (n *simNode) Settled(*Flight)                                 {}
func (n *simNode) DeadLettered(exchange.DeadLettered, *Settlement) {}
func (n *simNode) Hung(*Lease, time.Duration)                      {}
func (n *simNode) Abandoned(*Lease)                                {}
func (n *simNode) BreakerChanged(guard.Change, time.Time, string)  {}
func (n *simNode) RoleChanged(string, int)                         {}
func (n *simNode) ExchangeFailed(error, int)                       {}

// Ended checks that no lease is lost while nothing fails: heartbeats extend it.
func (n *simNode) Ended(l *Lease, e End) {
	if e.Kind == wakebelltype.EventLost && n.sim.now.After(start.Add(2*time.Minute)) {
		n.sim.t.Fatalf("%v: the lease of %s is lost: %s", n.sim.now.Sub(start), l.ID, e.Why)
	}
}

// simRun is the handler of a lease in a simulation.
type simRun struct {
	node             *simNode
	lease            *Lease
	begun, abandoned bool
	cause            error
}

func (r *simRun) Begun() (bool, time.Time) { return r.begun, time.Time{} }
func (r *simRun) Awaits() bool             { return false }
func (r *simRun) Hung() bool               { return false }
func (r *simRun) Cause() error             { return r.cause }
func (r *simRun) Expires(time.Time)        {}
func (r *simRun) Extended(error)           {}
func (r *simRun) Settled(error)            {}

func (r *simRun) End(cause error) { r.cause = cause }

func (r *simRun) Abandon() bool {
	if r.begun && !r.abandoned {
		r.abandoned = true
		r.node.running--
	}
	return true
}

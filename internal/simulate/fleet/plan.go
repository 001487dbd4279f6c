package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Plan is what a run does, and with which processes. It is drawn from a seed.
type Plan struct {
	Seed    uint64
	Nodes   int
	Clients int
	Keys    bool          // topics have PerKey(1)
	Brief   bool          // delays are of seconds only
	Calm    time.Duration // after which there are no faults
	Ops     []Op
	Loses   bool // Redis loses writes
	Aims    bool // operations that bring their own faults end the plan, one after the other
	Outbox  *Outbox
}

// Op is an operation of a plan.
type Op struct {
	At      time.Duration
	kind    *kind
	Number  int
	A, B, C int // what the operation makes of them
}

func (o Op) String() string {
	return fmt.Sprintf("%8v %d %s %d %d %d", o.At.Round(time.Millisecond), o.Number, o.kind.name, o.A, o.B, o.C)
}

// body returns the body of what the operation schedules, which no other operation has.
func (o Op) body() string { return fmt.Sprintf("body-%d", o.Number) }

// String returns the seed and the operations.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d nodes, %d clients, keys %v, brief %v, losses %v, outbox %v\n", p.Seed, p.Nodes, p.Clients, p.Keys, p.Brief, p.Loses, p.Outbox != nil)
	for _, o := range p.Ops {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}

// Draw draws a plan with a number of operations. box may be nil.
func Draw(seed uint64, ops int, box *Outbox) *Plan {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a plan is to be repeated
	p := &Plan{Seed: seed, Nodes: 1 + r.IntN(3), Clients: 1 + r.IntN(3), Keys: r.IntN(2) == 0, Brief: r.IntN(2) == 0, Outbox: box}
	p.Loses, p.Aims = seed%4 == 3, seed%4 == 1
	if p.Aims {
		p.Nodes = max(p.Nodes, 2) // one dies
	}
	var all, calm []*kind
	for i := range kinds {
		k := &kinds[i]
		if k.outbox && box == nil || k.losses && !p.Loses || k.weight == 0 {
			continue
		}
		some := slices.Repeat([]*kind{k}, k.weight)
		if all = append(all, some...); !k.fault {
			calm = append(calm, some...)
		}
	}
	at, pause := time.Duration(0), int64([]time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}[r.IntN(3)])
	for i := range ops {
		at += time.Duration(r.Int64N(pause))
		o := Op{At: at, Number: i, A: r.IntN(100), B: r.IntN(100), C: r.IntN(100)}
		if o.kind = all[r.IntN(len(all))]; i >= p.calm(ops) {
			o.kind = calm[r.IntN(len(calm))]
		}
		if p.Ops = append(p.Ops, o); i == p.calm(ops) {
			p.Calm = at
		}
	}
	p.aim(r, at)
	return p
}

// aimEvery is how long an operation that brings its own faults has for itself, and the first one
// after the last fault of others.
const aimEvery = 40 * time.Second

// aim adds the operations that bring their own faults. Between drawn faults another one often comes
// first, such as the end of a process that the operation is about.
func (p *Plan) aim(r *rand.Rand, at time.Duration) {
	for i := range kinds {
		for range 2 * min(1, len(p.Ops)) {
			if k := &kinds[i]; p.Aims && k.aimed {
				at += aimEvery
				p.Ops = append(p.Ops, Op{At: at, kind: k, Number: len(p.Ops), A: r.IntN(100), B: r.IntN(100), C: r.IntN(100)})
			}
		}
	}
}

// calm is the first of a number of operations after which there are no faults.
func (p *Plan) calm(ops int) int { return ops * 2 / 3 }

// delays are those of timers and reminders.
var delays = []time.Duration{
	0, 0, time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	20 * time.Second, time.Minute, 3 * time.Minute,
}

func (p *Plan) delay(o Op) time.Duration {
	some := delays
	if p.Brief {
		some = delays[:8]
	}
	return some[(o.A+o.B+o.C)%len(some)]
}

// kind is a kind of operation. Its weight says how often it is drawn.
type kind struct {
	name   string
	weight int
	fault  bool
	outbox bool // it needs a database
	losses bool // it is drawn in plans in which Redis loses writes
	aimed  bool // it ends plans with Aims
	do     func(f *fleet, o Op)
}

// kinds are all operations.
var kinds []kind

func init() { // in a function, because operations name their kinds
	kinds = []kind{
		{name: "schedule", weight: 12, do: (*fleet).schedule},
		{name: "cancel", weight: 4, do: (*fleet).cancel},
		{name: "schedule with a key", weight: 4, do: (*fleet).scheduleOnce},
		{name: "publish", weight: 4, do: (*fleet).publish},
		{name: "take a turn", weight: 6, do: (*fleet).takeTurn},
		{name: "remind", weight: 4, do: func(f *fleet, o Op) { f.remind(o, false) }},
		{name: "join", weight: 2, do: (*fleet).join},
		{name: "reshard", weight: 1, do: (*fleet).reshard},
		{name: "repeat", weight: 2, do: (*fleet).repeat},
		{name: "schedule in line", weight: 3, do: (*fleet).scheduleInLine},
		{name: "schedule side by side", weight: 2, do: (*fleet).scheduleSideBySide},
		{name: "join and repeat", weight: 2, do: (*fleet).joinAndRepeat},
		{name: "forget", weight: 1, do: func(f *fleet, o Op) { f.remind(o, true) }},
		{name: "commit", weight: 4, outbox: true, do: (*fleet).commit},

		{name: "cut a link", weight: 2, fault: true, do: (*fleet).cutLink},
		{name: "silence a link", weight: 3, fault: true, do: (*fleet).silenceLink},
		{name: "delay a link", weight: 1, fault: true, do: (*fleet).delayLink},
		{name: "crash a node", weight: 2, fault: true, do: func(f *fleet, o Op) { f.restartNode(o, (*node).crash) }},
		{name: "drain a node", weight: 2, fault: true, do: func(f *fleet, o Op) { f.restartNode(o, (*node).drain) }},
		{name: "crash a client", weight: 1, fault: true, do: func(f *fleet, o Op) { f.restartClient(o, (*client).crash) }},
		{name: "close a client", weight: 1, fault: true, do: func(f *fleet, o Op) { f.restartClient(o, (*client).close) }},
		{name: "Redis is away", weight: 1, fault: true, do: (*fleet).redisAway},
		{name: "Redis loses replies", weight: 1, fault: true, do: (*fleet).redisLoses},
		{name: "cut a node off from Redis", weight: 1, fault: true, do: (*fleet).cutOffNode},
		{name: "take a turn over a late link", weight: 2, fault: true, do: (*fleet).turnOverLateLink},
		{name: "leave without Redis", weight: 2, fault: true, do: (*fleet).leaveWithoutRedis},
		{name: "lose writes", weight: 2, fault: true, losses: true, do: (*fleet).loseWrites},
		{name: "flush scripts", weight: 1, fault: true, do: (*fleet).flushScripts},

		{name: "take a turn over a late link at rest", aimed: true, do: (*fleet).turnOverLateLink},
		{name: "leave without Redis at rest", aimed: true, do: (*fleet).leaveWithoutRedis},
		{name: "join and repeat at rest", aimed: true, do: (*fleet).joinAndRepeat},
	}
}

package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/pairs"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Plan is everything that a run depends on. What it does not have is drawn from Seed.
type Plan struct {
	Seed     uint64
	Shape    Shape
	Begin    time.Time // zero: at once
	Nodes    int
	IDs      int // how many
	Settings leasing.Settings
	Loss     float64       // the share of requests, and of answers, that the network loses
	Repeat   float64       // the share of exchanges that it delivers once more
	Release  float64       // the share of handlers that give their timers back
	Timeout  time.Duration // after which a lost answer is noticed
	Keeping  keeping
	Ops      []Op // during the first two thirds of them there are faults
}

// Op is an operation of a plan.
type Op struct {
	At     time.Duration
	kind   *kind
	Client int
	ID     int
	A, B   int // what the operation makes of them
	Calm   bool
}

func (o Op) String() string {
	return fmt.Sprintf("%s c%d id%d %d %d", o.kind.name, o.Client, o.ID, o.A, o.B)
}

// ids are the most ids of a plan; those with the same number modulo keys have the same key.
const ids, keys = 12, 4

// settings are limits with which a run begins.
var settings = []leasing.Settings{
	{},
	{},
	{Flow: exchange.Flow{PerKey: 1}},
	{Flow: exchange.Flow{PerKey: 2}},
	{Flow: exchange.Flow{MaxInFlight: 3}},
	{Flow: exchange.Flow{RateLimit: 5, RatePer: time.Second, RateBurst: 5}},
	{Flow: exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Second, KeyRateBurst: 2}},
	{Flow: exchange.Flow{PerKey: 1, MaxInFlight: 4, RateLimit: 20, RatePer: time.Second, RateBurst: 4}},
}

// Draw draws a plan with a number of operations, of a shape that the seed says.
func Draw(seed uint64, ops int) *Plan { return DrawShape(seed, ops, shapeOf(seed)) }

// DrawShape draws a plan of a shape. Each plan has about half of the kinds, or a quarter, so that
// these meet often.
func DrawShape(seed uint64, ops int, shape Shape) *Plan {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a plan is to be repeated
	p := &Plan{
		Seed: seed, Shape: shape, Nodes: 1 + r.IntN(3), IDs: []int{3, ids}[r.IntN(2)], Settings: shape.settings()[r.IntN(len(settings))],
		Loss: []float64{0, 0.02, 0.1}[r.IntN(3)], Repeat: []float64{0, 0.02}[r.IntN(2)],
		Release: []float64{0.02, 0.3}[r.IntN(2)], Timeout: 3 * time.Second,
	}
	p.Begin = begins[r.IntN(len(begins))]
	s := &p.Settings
	s.MaxConcurrent, s.LeaseTTL = 1+r.IntN(60), 2*time.Second+time.Duration(r.Int64N(int64(10*time.Second)))
	s.PollingInterval, s.MaxPollingInterval = time.Second, 5*time.Second
	s.Retry = leasing.Retry{Initial: time.Second, Max: 30 * time.Second, MaxFailures: 20}
	if r.IntN(2) == 0 {
		s.MaxLeaseAge = 3 * s.LeaseTTL
	}
	shape.adjust(p)
	p.Keeping = keepingOf(seed)
	if fair(seed) {
		p.takeTurns()
	}
	var enabled, calm []*kind
	one := []int{2, 4}[r.IntN(2)] // in so many kinds is drawn
	for i := range kinds {
		k := &kinds[i]
		if fair(seed) && shape == Many && slices.Contains(unshared, k.name) {
			continue
		}
		if k.drawn == inMany && shape == Many || k.drawn < inMany && (k.drawn == always || r.IntN(one) == 0) {
			some := slices.Repeat([]*kind{k}, k.weight)
			enabled = append(enabled, some...)
			if k.drawn != faulty {
				calm = append(calm, some...)
			}
		}
	}
	at := time.Duration(0)
	pause := []int64{int64(20 * time.Millisecond), int64(time.Second), int64(20 * time.Second)}[r.IntN(3)]
	for i := range ops {
		op := Op{Client: r.IntN(2), ID: r.IntN(p.IDs), A: r.IntN(100), B: r.IntN(100), Calm: i >= ops*2/3}
		if op.kind = enabled[r.IntN(len(enabled))]; op.Calm {
			op.kind = calm[r.IntN(len(calm))]
		}
		at += time.Duration(r.Int64N(pause)) + shape.idle(i)
		op.At = at
		p.Ops = append(p.Ops, op)
	}
	p.withJoins()
	p.withOutages()
	p.withLosses()
	return p
}

// Pairs returns which operations of the plan meet on a timer or its key.
func (p *Plan) Pairs() *pairs.Run {
	r := pairs.NewRun()
	for _, op := range p.Ops {
		ids := []int{op.ID}
		if op.kind.all {
			ids = nil
			for id := range p.IDs {
				ids = append(ids, id)
			}
		}
		var subjects []string
		for _, id := range ids {
			subjects = append(subjects, name(id))
			if key := keyOf(id); key != "" {
				subjects = append(subjects, "of "+key)
			}
		}
		r.Add(op.kind.name, subjects...)
	}
	return r
}

// Shrink returns the plan with as few operations, and as little loss, as break the same
// invariant. fails reports whether a plan does.
func Shrink(p *Plan, fails func(*Plan) bool) *Plan {
	for _, change := range []func(*Plan){
		func(p *Plan) { p.Loss = 0 }, func(p *Plan) { p.Repeat = 0 }, func(p *Plan) { p.Nodes = 1 },
	} {
		smaller := *p
		if change(&smaller); fails(&smaller) {
			p = &smaller
		}
	}
	for size := len(p.Ops) / 2; size > 0; size /= 2 {
		for from := 0; from < len(p.Ops); {
			smaller := *p
			smaller.Ops = slices.Delete(slices.Clone(p.Ops), from, min(from+size, len(p.Ops)))
			if fails(&smaller) {
				p = &smaller
			} else {
				from += size
			}
		}
	}
	return p
}

// withJoins adds operations of joins to an eighth of the plans. They have a generator of their
// own, so that the plans of other seeds are as they were.
func (p *Plan) withJoins() {
	if p.Seed%8 != 1 {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 3)) //nolint:gosec // a plan is to be repeated
	var some []*kind
	for i := range kinds {
		if k := &kinds[i]; k.drawn == joined {
			some = append(some, slices.Repeat([]*kind{k}, k.weight)...)
		}
	}
	var ops []Op
	for _, op := range p.Ops {
		if ops = append(ops, op); r.IntN(3) == 0 {
			ops = append(ops, Op{At: op.At, Client: r.IntN(2), kind: some[r.IntN(len(some))], A: r.IntN(100), B: r.IntN(100), Calm: op.Calm})
		}
	}
	p.Ops = ops
}

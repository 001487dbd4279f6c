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
	KeyRun   int
	Loss     float64       // the share of requests, and of answers, that the network loses
	Repeat   float64       // the share of exchanges that it delivers once more
	Release  float64       // the share of handlers that give their timers back
	Timeout  time.Duration // after which a lost answer is noticed
	Keeping  keeping
	Loses    bool     // Redis loses writes
	Steps    bool     // the clock of Redis steps
	Damages  bool     // Redis loses parts of keys
	Ops      []Op     // during the first two thirds of them there are faults
	Without  []string // causes that were left out, see leaveOut
	limit    int      // of events, after which the run is given up; 0: none
}

// Op is an operation of a plan.
type Op struct {
	At     time.Duration
	kind   *kind
	Number int // in the plan as it was drawn
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
	if seed%8 == 6 {
		p.Settings.Flow, p.KeyRun = exchange.Flow{PerKey: 1}, 2+int(seed/8%8)
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
	if p.joins() {
		p.with(joined, 3)
	}
	if p.Seed%8 == 2 {
		p.with(reminding, 6)
	}
	p.withOutages()
	p.withLosses()
	p.withSteps()
	p.withDamage()
	for i := range p.Ops {
		p.Ops[i].Number = i
	}
	return p
}

// joins reports whether the plan has timers that wait for others.
func (p *Plan) joins() bool { return p.Seed%8 == 1 }

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

// with adds operations that are drawn in some plans only. They have a generator of their own, so
// that the plans of other seeds are as they were.
func (p *Plan) with(those drawn, generator uint64) {
	r := rand.New(rand.NewPCG(p.Seed, generator)) //nolint:gosec // a plan is to be repeated
	var some []*kind
	for i := range kinds {
		if k := &kinds[i]; k.drawn == those {
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

// addFaults adds faults to the operations before all is calm, one after every so many. They have a
// generator of their own, so that the plans of other seeds are as they were.
func (p *Plan) addFaults(those drawn, generator uint64, every int) {
	r := rand.New(rand.NewPCG(p.Seed, generator)) //nolint:gosec // a plan is to be repeated
	var some []*kind
	for i := range kinds {
		if k := &kinds[i]; k.drawn == those {
			some = append(some, k)
		}
	}
	var ops []Op
	for _, op := range p.Ops {
		if ops = append(ops, op); !op.Calm && r.IntN(every) == 0 {
			fault := some[0]
			if len(some) > 1 {
				fault = some[r.IntN(len(some))]
			}
			ops = append(ops, Op{At: op.At, kind: fault, A: r.IntN(100), B: r.IntN(100)})
		}
	}
	p.Ops = ops
}

// Shape says over what time the operations of a plan are spread, and how many timers each has.
type Shape int

// Dense plans have few timers, on which operations meet within minutes or hours. Plans of Days
// have bursts of operations with nights between them, in which nodes wait for long. Those of Many schedule
// and import hundreds of timers at once.
const (
	Dense Shape = iota
	Days
	Many
)

// Shapes are the shapes by name.
var Shapes = map[string]Shape{"dense": Dense, "days": Days, "many": Many}

func (h Shape) String() string { return [...]string{"dense", "days", "many"}[h] }

// shapeOf draws the shape of a seed. It has a generator of its own, so that the rest of a plan
// does not depend on the weights.
func shapeOf(seed uint64) Shape {
	if fair(seed) && seed/8%2 == 1 {
		return Many
	}
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a plan is to be repeated
	return []Shape{Dense, Dense, Dense, Days, Days, Many, Many, Many}[r.IntN(8)]
}

// fair reports whether keys take turns in the plan of a seed, if it has limits by key. The other
// seeds are those of the table of mutants.
func fair(seed uint64) bool { return seed%8 == 5 }

// unshared are the operations after which the judge of shares has nothing to say.
var unshared = []string{"retune", "reshard", "deploy"}

// takeTurns has the keys of a plan take turns. In one of Many they compete for a few handlers.
func (p *Plan) takeTurns() {
	s := &p.Settings
	if p.Shape == Many {
		s.Flow, s.MaxConcurrent = exchange.Flow{PerKey: 5}, 1+int(p.Seed/32%4)
	}
	if s.Flow.ByKey() {
		s.Flow.FairKeys = 1 + int(p.Seed/16%2)
	}
}

const (
	night = 18 * time.Hour // how long nothing is done in a plan of Days, which has 30 days with 600 operations
	burst = 15             // operations between two nights
	most  = 1000           // timers at once in a plan of Many: the server sorts them for each read
)

// longDelays are those of timers in plans of Days, beside the short ones.
var longDelays = append([]time.Duration{6 * time.Hour, 24 * time.Hour, 73 * time.Hour}, delays...)

// manySettings are limits for hundreds of timers, in the place of settings.
var manySettings = []leasing.Settings{
	{},
	{},
	{Flow: exchange.Flow{PerKey: 1}},
	{Flow: exchange.Flow{PerKey: 5}},
	{Flow: exchange.Flow{MaxInFlight: 100}},
	{Flow: exchange.Flow{RateLimit: 500, RatePer: time.Second, RateBurst: 200}},
	{Flow: exchange.Flow{KeyRateLimit: 50, KeyRatePer: time.Second, KeyRateBurst: 20}},
	{Flow: exchange.Flow{PerKey: 1, MaxInFlight: 200, RateLimit: 1000, RatePer: time.Second, RateBurst: 100}},
}

// settings are the limits of a shape.
func (h Shape) settings() []leasing.Settings {
	if h == Many {
		return manySettings
	}
	return settings
}

// adjust gives a plan what its shape needs.
func (h Shape) adjust(p *Plan) {
	switch s := &p.Settings; h {
	case Days: // as nodes do that have hints
		s.PollingInterval, s.MaxPollingInterval = time.Minute, 30*time.Minute
	case Many:
		s.MaxConcurrent *= 10
	}
}

// idle is how long nothing is done before an operation.
func (h Shape) idle(i int) time.Duration {
	if h != Days || i == 0 || i%burst != 0 {
		return 0
	}
	return night
}

// delay returns a delay of a timer.
func (s *sim) delay(drawn int) time.Duration {
	if s.plan.Shape == Days {
		return longDelays[drawn%len(longDelays)]
	}
	return delays[drawn%len(delays)]
}

// looks is how often beats look at the schedules, and nodes at what operators have set, beside
// hints; zero: as often as they do by default.
func (h Shape) looks() time.Duration {
	if h == Days {
		return 5 * time.Minute
	}
	return 0
}

// patience is how often the run looks whether all is done, every 10 minutes.
func (h Shape) patience() int {
	if h == Days {
		return 600
	}
	return 40
}

package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages/exchange"
)

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

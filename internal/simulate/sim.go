// Package simulate runs fleets of nodes and clients in virtual time: the core of the poller
// and the Lua scripts as they are in production, on an embedded Redis, with a network that
// loses, delays and repeats what is sent, and with processes that crash and stall. A seed
// replays a run, byte for byte. docs/simulation.md explains it.
package simulate

import (
	"container/heap"
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// topic is the topic of a simulation.
const topic = "t"

// Result is what a run has shown.
type Result struct {
	Hash      uint64 // of everything that happened
	Virtual   time.Duration
	Done      int // operations
	Events    int // that have happened, which is what a run costs
	Exchanges int
	Delivered int
	Scheduled int
	Fired     int           // runs of recurring schedules
	Messages  int           // deliveries of messages
	Turns     int           // at the gate
	Travelled int           // deliveries of timers of the topic that moves
	Joined    int           // timers of joins that were claimed
	Reminded  int           // reminders that their recipients got
	Latest    time.Duration // by which a claim came too late while nothing went wrong
	Broken    *Broken       // nil: every invariant has held
	Trace     []string
}

// Broken is an invariant that did not hold.
type Broken struct{ Invariant, Text string }

func (b *Broken) Error() string { return b.Invariant + ": " + b.Text }

// givenUp ends a run that has reached the limit of its plan.
type givenUp struct{}

// sim is a run. One goroutine decides everything, so there is nothing to lock.
type sim struct {
	ctx    context.Context //nolint:containedctx // of the run
	plan   *Plan
	random *rand.Rand
	begin  time.Time
	events events
	order  int

	server  *miniredis.Miniredis
	aged    time.Time // until when keys have expired
	rdb     *redis.Client
	clients [2]*client
	nodes   []*node
	beats   [2]*beat
	guests  [3]*guest
	judge   *judge
	flow    exchange.Flow         // with which nodes start
	retuned wakebelltype.Settings // what operators have set

	reshaped time.Time // when the layout may last have changed

	journey  *journey  // of the topic that moves; nil: it has no timers yet
	workflow *workflow // timers that wait for others; nil: there are none yet
	minder   *minder   // reminders; nil: there are none yet
	options  *redis.Options
	atEnd    []func()

	schedules map[string]*schedule // recurring ones
	messages  *messages            // of the queue; nil: there is none yet

	turns *turns // at the gate

	faulty  bool          // the network misbehaves
	skew    time.Duration // of the clock of Redis against that of processes
	stepped []span        // over which that has stepped
	outage  outage        // of Redis
	writes  writes        // what Redis writes now
	done    bool          // no client calls any more
	resting time.Time     // since when nothing goes wrong; zero: it does
	hash    hash.Hash64
	trace   []string
	keep    bool // the trace
	result  Result
}

// event is something that happens at an instant.
type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// after has something happen after a time.
func (s *sim) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{time.Now().Add(d), s.order, do})
}

// until lets events happen until an instant.
func (s *sim) until(end time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(end) {
		e := heap.Pop(&s.events).(event)
		s.sleepUntil(e.at)
		if s.result.Events++; s.plan.limit > 0 && s.result.Events > s.plan.limit {
			panic(givenUp{})
		}
		e.do()
	}
	s.sleepUntil(end)
}

// keysAge is how early or late keys expire at most. The server looks at all of them for it, which at
// every event would take a sixth of the time.
const keysAge = time.Second

// sleepUntil lets virtual time pass, and keys expire.
func (s *sim) sleepUntil(at time.Time) {
	sleepUntil(at)
	s.tick()
}

// tick has the clock of Redis go on, and keys expire.
func (s *sim) tick() {
	d := time.Since(s.aged)
	for _, server := range s.servers() {
		if s.plan.Steps {
			server.SetTime(s.now())
		}
		if d >= keysAge {
			server.FastForward(d)
		}
	}
	if d >= keysAge {
		s.aged = s.aged.Add(d)
	}
}

// servers are the Redis servers. They have the same clock.
func (s *sim) servers() []*miniredis.Miniredis {
	if s.journey == nil {
		return []*miniredis.Miniredis{s.server}
	}
	return []*miniredis.Miniredis{s.server, s.journey.second}
}

// now is the time by the clock of Redis.
func (s *sim) now() time.Time { return time.Now().Add(s.skew) }

// sleepUntil lets virtual time pass. An instant of its own for each event keeps goroutines of
// the Redis client from running at the same time as the decisions.
func sleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		<-time.After(d)
	}
}

// note adds a line to what happened.
func (s *sim) note(format string, args ...any) {
	line := fmt.Sprintf("%-10v ", time.Since(s.begin)) + fmt.Sprintf(format, args...)
	fmt.Fprintln(s.hash, line) //nolint:errcheck // a hash does not fail
	if s.keep {
		s.trace = append(s.trace, line)
	}
}

// broken ends the run.
func (s *sim) broken(invariant, format string, args ...any) {
	panic(&Broken{invariant, fmt.Sprintf(format, args...)})
}

// between returns a random duration.
func (s *sim) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

func (s *sim) chance(p float64) bool { return s.random.Float64() < p }

// Run runs a plan. Call it in a synctest bubble: it waits in virtual time.
func Run(ctx context.Context, plan *Plan, trace bool) (result Result) {
	sleepUntil(plan.Begin)
	server := embedded.Start()
	defer server.Close()
	server.Miniredis().ClockTTL(false)
	options := server.Options()
	options.PoolSize, options.MaxRetries = 100, -1
	s := &sim{
		ctx: ctx, plan: plan, random: rand.New(rand.NewPCG(plan.Seed, 1)), //nolint:gosec // a run is to be repeated
		begin: time.Now(), server: server.Miniredis(), aged: time.Now(), rdb: redis.NewClient(options), faulty: true, hash: fnv.New64a(), keep: trace,
		schedules: map[string]*schedule{}, options: options,
	}
	defer func() {
		for _, do := range s.atEnd {
			do()
		}
	}()
	defer s.rdb.Close() //nolint:errcheck // the server ends too
	defer func() {
		if p := recover(); p != nil {
			switch p := p.(type) {
			case *Broken:
				s.note("BROKEN %v", p)
				s.result.Broken = p
			case givenUp:
			default:
				panic(p)
			}
		}
		<-time.After(time.Minute) // the goroutines of the stores end when they have nothing to do
		result = s.result
		result.Hash, result.Trace, result.Virtual = s.hash.Sum64(), s.trace, time.Since(s.begin)
	}()
	s.flow, s.judge = plan.Settings.Flow, newJudge(s)
	for i := range s.clients {
		mortal, its := redis.NewClient(options), new(life)
		its.begin(immortal)
		mortal.AddHook(its)
		defer mortal.Close() //nolint:errcheck // as above
		s.clients[i] = &client{sim: s, number: i, store: s.store(s.rdb), mortal: s.store(mortal), life: its}
	}
	s.turns = &turns{sim: s, seen: map[string]uint64{}, had: map[gate.Ticket]string{}}
	for i := range s.guests {
		s.guests[i] = newGuest(s, i)
	}
	for i := range s.beats {
		s.beats[i] = newBeat(s, i, options)
		defer s.beats[i].rdb.Close() //nolint:errcheck // as above
	}
	for i := range plan.Nodes {
		s.nodes = append(s.nodes, newNode(s, i))
	}
	s.play()
	s.rest()
	return s.result
}

// play does what the plan says: first with faults, then without.
func (s *sim) play() {
	pause := time.Duration(0) // that the plan does not have
	for _, op := range s.plan.Ops {
		if op.Calm && s.faulty {
			from := time.Now()
			s.calm()
			pause = time.Since(from)
		}
		s.until(s.begin.Add(op.At + pause))
		s.note("op %v", op)
		s.result.Done++
		s.outlast(op.kind)
		op.kind.do(s, op)
	}
}

// calm ends the faults, and waits until handlers that have begun before have ended.
func (s *sim) calm() {
	s.faulty = false
	s.note("calm")
	if s.outage.mend != nil {
		s.outage.mend()
	}
	for _, n := range s.nodes {
		n.restart()
	}
	s.until(time.Now().Add(longestStall + 5*s.plan.Settings.LeaseTTL))
	s.resting, s.judge.stalled = s.now(), false
}

// rest waits until nothing is left to do.
func (s *sim) rest() {
	if s.faulty {
		s.calm()
	}
	s.note("rest")
	s.clients[0].calm()
	for range s.plan.Shape.patience() {
		s.until(time.Now().Add(10 * time.Minute))
		if s.done = !s.clients[0].resharding(); s.done && s.judge.pending()+s.messages.left()+s.turns.waiting()+s.journey.left()+s.workflow.left()+s.minder.left() == 0 {
			break
		}
	}
	s.judge.runsFired()
	s.judge.runsComplete()
	for _, name := range slices.Sorted(maps.Keys(s.schedules)) {
		s.clients[0].deleteSchedule(name)
	}
	s.until(time.Now().Add(s.plan.sweeps()))
	s.judge.atRest()
}

// store returns a store of one process.
func (s *sim) store(rdb *redis.Client) *shards.Store {
	of, err := timers.New(rdb, wakebelltype.Keys{})
	if err != nil {
		panic(err)
	}
	of.NoCoalescing, of.NoPayloadsApart = true, true
	of.Logger = slog.New(slog.DiscardHandler)
	return shards.New(of)
}

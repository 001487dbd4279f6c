package scripts

import (
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Batcher collects the scripts of many topics for one pipeline: one write and one read
// of a connection, and one wake-up of Redis. Each script is atomic by itself and has its
// own answer and error, as if it had been sent alone.
//
// While few topics call, a script is sent at once and alone. While at least minCallers
// topics call within measureFor, a script waits until sendEvery has passed since the
// last pipeline.
//
// It buys CPU time of the client and of Redis (docs/decisions/0018-batches.md).
// Runner.Batcher of nil switches it off.
type Batcher struct {
	mu      sync.Mutex
	servers map[string]*batches
}

const (
	minCallers = 16
	measureFor = 20 * time.Millisecond
	sendEvery  = 2 * time.Millisecond
	// maxBatch bounds the scripts of a pipeline: their answers wait for the last.
	maxBatch = 64
)

// NewBatcher returns a Batcher for the runners of one client.
func NewBatcher() *Batcher { return &Batcher{servers: map[string]*batches{}} }

// Caller identifies a topic to a Batcher. The zero value is ready for use.
type Caller struct {
	period uint64 // in which it was last counted
}

// batches are the scripts for one server.
type batches struct {
	waiting []*batched
	led     bool      // the caller of one of them will send them
	sent    time.Time // when the last pipeline was sent

	since   time.Time // when the current measurement began
	callers int       // counted since then
	period  uint64    // number of the measurement
	many    bool      // the last measurement counted minCallers
}

// batched is a script that waits to be sent with others.
type batched struct {
	script *redis.Script
	keys   []string
	args   []any
	taken  bool          // it is being sent
	sent   time.Time     // when it was taken
	done   chan struct{} // closed when reply and err are set
	reply  any
	err    error
}

func newBatched(script *redis.Script, keys []string, args []any) *batched {
	return &batched{script: script, keys: keys, args: args, done: make(chan struct{}), err: errNotSent}
}

func (g *Batcher) of(server string) *batches {
	b := g.servers[server]
	if b == nil {
		b = &batches{period: 1}
		g.servers[server] = b
	}
	return b
}

// delay counts a caller, and returns how long its script should wait for others; 0: it
// is sent at once.
func (g *Batcher) delay(server string, from *Caller, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.of(server)
	if took := now.Sub(b.since); took >= measureFor {
		b.many = b.callers >= minCallers && took <= measureFor*time.Duration(b.callers)/minCallers
		b.since, b.callers = now, 0
		b.period++
	}
	if from.period != b.period {
		from.period = b.period
		b.callers++
	}
	if !b.many {
		return 0
	}
	if wait := sendEvery - now.Sub(b.sent); wait > 0 {
		return wait
	}
	b.sent = now
	return 0
}

// add adds a script to those that wait. Leads reports that the caller has to send them.
func (g *Batcher) add(server string, s *batched) (leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.of(server)
	b.waiting = append(b.waiting, s)
	leads = !b.led
	b.led = true
	return leads
}

// take returns the scripts that wait.
func (g *Batcher) take(server string) []*batched {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of(server).take()
}

func (b *batches) take() []*batched {
	taken := b.waiting
	b.waiting, b.led, b.sent = nil, false, time.Now()
	for _, s := range taken {
		s.taken, s.sent = true, b.sent
	}
	return taken
}

// leave removes a script whose caller gives up, unless it is already being sent.
func (g *Batcher) leave(server string, s *batched) (left bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.taken {
		return false
	}
	b := g.of(server)
	b.waiting = slices.DeleteFunc(b.waiting, func(other *batched) bool { return other == s })
	return true
}

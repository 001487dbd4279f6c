package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
)

// fleet are the processes of a run.
type fleet struct {
	plan    *Plan
	ctx     context.Context //nolint:containedctx // ends with the run
	net     *network
	store   *store
	direct  *redis.Client // of the judge: it has no network
	nodes   []*node
	clients []*client
	locks   locks
	calm    time.Time // when there are no more faults
	record  record
}

// Result is what a run has done, and what it has broken.
type Result struct {
	Broken  []Broken
	Virtual time.Duration
	Writes  int
	Runs    int
	Turns   int
	Arrived int // reminders
	Faults  int
	Trace   []string
}

// String returns the numbers.
func (r Result) String() string {
	return fmt.Sprintf("%d writes, %d runs, %d turns, %d reminders, %d faults, %v of virtual time",
		r.Writes, r.Runs, r.Turns, r.Arrived, r.Faults, r.Virtual.Round(time.Millisecond))
}

// Report logs what a plan has done, with its trace if that is wanted or a promise is broken, for
// which it fails the test.
func (r Result) Report(t testing.TB, p *Plan, trace bool) {
	t.Helper()
	if len(r.Broken) > 0 || trace {
		t.Log(p)
		for _, line := range r.Trace {
			t.Log(line)
		}
	}
	for _, b := range r.Broken {
		t.Errorf("seed %d breaks %v", p.Seed, b)
	}
	t.Logf("seed %d: %v", p.Seed, r)
}

// Broken is a promise that did not hold.
type Broken struct{ Promise, About string }

func (b Broken) String() string { return b.Promise + ": " + b.About }

// Run runs a plan. Call it in a synctest bubble: it waits in virtual time.
func Run(ctx context.Context, p *Plan) Result {
	f, end := newFleet(ctx, p)
	defer end()
	began := time.Now()
	f.calm = began.Add(p.Calm)
	f.launch()
	f.operate(began)
	left := f.rest()
	f.stop(end)
	return f.result(began, left)
}

// newFleet returns the fleet of a plan, with no process but Redis.
func newFleet(ctx context.Context, p *Plan) (f *fleet, end context.CancelFunc) {
	f = &fleet{plan: p, net: newNetwork(), locks: locks{held: map[string]chan struct{}{}}}
	f.ctx, end = context.WithCancel(ctx)
	f.store = newStore(f.net, netip.AddrFrom4([4]byte{10, 2, 0, 1}), rand.New(rand.NewPCG(p.Seed, 1))) //nolint:gosec // a plan is to be repeated
	f.direct = f.store.server.Client()
	return f, end
}

// launch starts all processes.
func (f *fleet) launch() {
	for i := range f.plan.Nodes {
		f.nodes = append(f.nodes, newNode(f, i))
		f.check(f.nodes[i].start(), "start a node")
	}
	for i := range f.plan.Clients {
		f.clients = append(f.clients, newClient(f, i))
		f.clients[i].start(f.nodes[i%len(f.nodes)])
	}
}

// operate begins each operation at its instant, and waits until all have ended. Those that
// cannot end are broken promises of their own.
func (f *fleet) operate(began time.Time) {
	var all sync.WaitGroup
	for _, o := range f.plan.Ops {
		<-time.After(time.Until(began.Add(o.At)))
		f.trace("begin %v", o)
		all.Go(func() { o.kind.do(f, o) })
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(patience):
		f.record.mu.Lock()
		f.record.trouble = append(f.record.trouble, "a call has not ended "+patience.String()+" after the last fault")
		f.record.mu.Unlock()
	}
}

// patience is how long the fleet has after its last operation to do what is due.
const patience = 10 * time.Minute

// rest waits until no timer, message or row is left, and returns what is.
func (f *fleet) rest() map[string]int64 {
	conn, err := connection.New(f.direct, connection.Config{Logger: quiet})
	f.check(err, "connect")
	c, err := wakebell.NewClient(conn)
	f.check(err, "connect")
	var left map[string]int64
	for limit := time.Now().Add(patience); time.Now().Before(limit); <-time.After(5 * time.Second) {
		if left = f.left(c); len(left) == 0 {
			break
		}
	}
	<-time.After(2 * leaseTTL) // for what must not arrive any more
	return left
}

// left returns how many timers, messages and rows are left.
func (f *fleet) left(c *wakebell.Client) map[string]int64 {
	left := map[string]int64{}
	names := append(slices.Clone(topics), ticks)
	for _, c := range f.clients {
		names = append(names, c.errands())
	}
	for _, n := range f.nodes {
		names = append(names, "wakebell.reminders:"+n.name())
	}
	for _, name := range names {
		stats, err := c.Stats(f.ctx, name)
		if f.check(err, "read "+name); stats.Total > 0 {
			left[name] = stats.Total
		}
	}
	stats, err := c.Queues().Stats(f.ctx, letters.Keys())
	if f.check(err, "read "+mail); stats.Pending+stats.Processing > 0 {
		left[mail] = stats.Pending + stats.Processing
	}
	f.record.mu.Lock()
	for _, s := range f.record.series {
		if time.Now().Before(s.until.Add(retryLimit)) {
			left["the schedule "+s.name] = 1
		}
	}
	f.record.mu.Unlock()
	if box := f.plan.Outbox; box != nil {
		stats, err := box.Box.Stats(f.ctx, box.DB)
		if f.check(err, "read the outbox"); stats.Waiting+stats.Failed > 0 {
			left["outbox"] = stats.Waiting + stats.Failed
		}
	}
	return left
}

// stop ends all processes.
func (f *fleet) stop(end context.CancelFunc) {
	for _, c := range f.clients {
		c.close()
	}
	for _, n := range f.nodes {
		n.drain()
	}
	end()
	<-time.After(time.Minute) // protoactor counts dead letters for a while
	f.check(f.direct.Close(), "close the connection of the judge")
	f.store.close()
	synctest.Wait()
}

// locks are locks by name, which wait in virtual time.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// take takes a lock and returns what releases it.
func (l *locks) take(name string) (release func()) {
	l.mu.Lock()
	if l.held[name] == nil {
		l.held[name] = make(chan struct{}, 1)
	}
	c := l.held[name]
	l.mu.Unlock()
	c <- struct{}{}
	return func() { <-c }
}

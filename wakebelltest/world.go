package wakebelltest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/testhook"
)

// World is a Redis and its nodes, in the virtual time of a synctest bubble. Its
// methods must be called in the goroutine of the test, except those that only
// read, which any goroutine of the bubble may call.
type World struct {
	t       testing.TB
	began   time.Time
	server  *embedded.Server
	rdb     *redis.Client
	client  *wakebell.Client
	prefix  string            // of the client
	conn    connection.Config // of its nodes, unless they have another
	history *history
	nodes   []*Node
}

// Run calls test with a new World, in virtual time that starts on 2000-01-01 at
// 00:00 UTC. If cfg has Handlers or Reminders, Run first starts a node with cfg.
// As with synctest.Test, test must use its own t, whose Context and Cleanup belong
// to the bubble.
//
// When test returns, the nodes end as in a crash, and Run waits for all goroutines
// that were started in the World. If test failed, it logs the deliveries, pending
// timers and dead letters.
func Run(t *testing.T, cfg wakebell.Config, test func(t *testing.T, w *World)) {
	t.Helper()
	RunWith(t, connection.Config{}, cfg, test)
}

// RunWith is Run for a World whose Connections to its Redis have this configuration: its
// Client, and the nodes of Start. The default of its Logger is the log of the test.
func RunWith(t *testing.T, conn connection.Config, cfg wakebell.Config, test func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, NewWith(t, conn, cfg))
	})
}

// New returns a World as Run makes it, in the synctest bubble of the caller. The
// World ends with t, whose cleanups run in the bubble.
func New(t testing.TB, cfg wakebell.Config) *World {
	t.Helper()
	return NewWith(t, connection.Config{}, cfg)
}

// NewWith returns a World as RunWith makes it, in the synctest bubble of the caller.
func NewWith(t testing.TB, conn connection.Config, cfg wakebell.Config) *World {
	t.Helper()
	inBubble(t)
	if conn.Logger == nil {
		conn.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	server := embedded.Start()
	rdb := server.Client()
	client, err := newClient(rdb, conn)
	if err != nil {
		_ = rdb.Close() // it was never used
		server.Close()
		t.Fatalf("wakebelltest: %v", err)
	}
	w := &World{
		t: t, began: time.Now(), conn: conn, history: newHistory(),
		server: server, rdb: rdb, client: client, prefix: conn.Prefix,
	}
	t.Cleanup(w.end)
	if len(cfg.Handlers) > 0 || cfg.Reminders != nil {
		w.Start(cfg)
	}
	return w
}

func newClient(rdb *redis.Client, cfg connection.Config) (*wakebell.Client, error) {
	conn, err := connection.New(rdb, cfg)
	if err != nil {
		return nil, err
	}
	return wakebell.NewClient(conn)
}

// inBubble fails a test outside of a bubble, because it would wait in real time.
func inBubble(t testing.TB) {
	t.Helper()
	defer func() {
		if recover() != nil {
			t.Fatal("wakebelltest: New must be called in a synctest bubble; use Run outside of one")
		}
	}()
	synctest.Wait()
}

// Client returns a client of the World's Redis. Its Connection has the configuration of
// RunWith or NewWith.
func (w *World) Client() *wakebell.Client { return w.client }

// Redis returns the World's connection to its Redis, for code that makes its own
// Clients and Systems. The World closes it at the end. The test must stop Systems
// that were not started by World.Start. Delivered does not include their deliveries,
// and Advance does not wait for them; to wait for them too, advance 1 ms more.
func (w *World) Redis() *redis.Client { return w.rdb }

const (
	// firstStep and lastStep bound the steps of the clock while work is
	// outstanding: rounding delays it by up to 1 µs, batching by up to 1 ms.
	firstStep = time.Microsecond
	lastStep  = 1024 * time.Microsecond
	// mostSteps bounds the delay by timers that are due again and again.
	mostSteps = 50 * time.Millisecond
)

// Advance advances the virtual clock by d, which must not be negative. Timers
// become due and are delivered in the order of their instants, sleeping handlers
// wake, leases are extended or expire, and failed timers are retried. Advance
// returns when all timers that are due have been handled and settled, and every
// goroutine of the World waits. Advance(0) delivers the timers that are due now.
//
// Handlers that begin during Advance can read the data of the test, and the test
// can read theirs afterwards, without a lock. A handler that still runs at the end
// of Advance needs one.
//
// The clock may advance by up to 2 ms more than d, because Redis rounds instants
// to microseconds and settlements are batched for a millisecond.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	if d < 0 {
		w.t.Fatalf("wakebelltest: Advance(%v): time goes forward only", d)
	}
	w.history.handOver()
	for _, n := range w.nodes {
		if n.running {
			testhook.Audit(n.System()) // of joins: every look costs real time, so there are few
		}
	}
	end := time.Now().Add(d)
	up := end.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	<-time.After(d + up.Sub(end))
	w.settle()
}

// settle advances the clock in steps until no work is outstanding, or the steps
// make no progress.
func (w *World) settle() {
	limit := time.Now().Add(mostSteps)
	for step, seen := firstStep, 0; time.Now().Before(limit); step *= 4 {
		synctest.Wait()
		if !w.outstanding() {
			break
		}
		if now := w.history.progress(); now != seen {
			step, seen = firstStep, now
		}
		if step > lastStep {
			break
		}
		<-time.After(step)
	}
	synctest.Wait()
	w.history.leave()
}

// outstanding reports whether a settlement is in flight, or a timer is due that a
// node may claim.
func (w *World) outstanding() bool {
	if w.history.unsettled() {
		return true
	}
	for _, n := range w.nodes {
		if n.running && n.behind() {
			return true
		}
	}
	return false
}

// background returns a context that outlives the test's.
func (w *World) background() context.Context { return context.WithoutCancel(w.t.Context()) }

// endTimeout bounds, in virtual time, the end of a World: handlers return after
// their contexts are cancelled, and protoactor counts dead letters for 5 s.
const endTimeout = time.Minute

// end ends the world.
func (w *World) end() {
	w.t.Helper()
	if w.t.Failed() {
		w.t.Log(w.report())
	}
	for _, n := range w.nodes {
		n.Crash()
	}
	<-time.After(endTimeout)
	for _, r := range w.history.running() {
		w.t.Errorf("wakebelltest: the handler of %s has not returned %v after its node ended: "+
			"it must return when its context ends", r, endTimeout)
	}
	if err := w.rdb.Close(); err != nil {
		w.t.Errorf("wakebelltest: close the connection (it is the world's to close): %v", err)
	}
	w.server.Close()
}

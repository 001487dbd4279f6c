package wakebelltest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
)

// World is a Redis and the nodes on it, in the virtual time of a synctest
// bubble. Its methods are for the goroutine of the test; those that only look
// may be called by any in the bubble.
type World struct {
	t       testing.TB
	began   time.Time
	server  *embedded.Server
	rdb     *redis.Client
	client  *wakebell.Client
	prefix  string // of the client
	logger  *slog.Logger
	history *history
	nodes   []*Node
}

// Run runs a test in a world of its own, in virtual time that begins on
// 2000-01-01 at 00:00 UTC. If cfg has Handlers or Reminders a node with them is started
// first. The t to use inside is the one that test gets, as with synctest.Test:
// its Context and Cleanup belong to the bubble.
//
// When test returns the nodes end as in a crash, and Run waits for all
// goroutines that began in the world. Of a test that failed it logs what was
// delivered, what would have been and what is dead.
func Run(t *testing.T, cfg wakebell.Config, test func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, New(t, cfg))
	})
}

// New makes a world as Run does, in a synctest bubble of the caller's. It ends
// with t, whose cleanups run in the bubble.
func New(t testing.TB, cfg wakebell.Config) *World {
	t.Helper()
	inBubble(t)
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	server := embedded.Start()
	rdb := server.Client()
	client, err := wakebell.NewClient(rdb, wakebell.ClientConfig{
		Keys: cfg.Keys, Prefix: cfg.Prefix, PayloadLimit: cfg.PayloadLimit, Logger: logger,
	})
	if err != nil {
		_ = rdb.Close() // it was never used
		server.Close()
		t.Fatalf("wakebelltest: %v", err)
	}
	w := &World{
		t: t, began: time.Now(), logger: logger, history: newHistory(),
		server: server, rdb: rdb, client: client, prefix: cfg.Prefix,
	}
	t.Cleanup(w.end)
	if len(cfg.Handlers) > 0 || cfg.Reminders != nil {
		w.Start(cfg)
	}
	return w
}

// inBubble fails a test that is not in a bubble: it would really wait.
func inBubble(t testing.TB) {
	t.Helper()
	defer func() {
		if recover() != nil {
			t.Fatal("wakebelltest: New wants to be called in a synctest bubble; Run makes one")
		}
	}()
	synctest.Wait()
}

// Client schedules, cancels and inspects in this world, with the keys, prefix
// and limit of the Config that the world was made with.
func (w *World) Client() *wakebell.Client { return w.client }

// Redis is the world's connection to its Redis, for code that makes Clients
// and Systems of its own. Systems that are not started by Start deliver, but
// Delivered does not have it, Advance does not wait for it (a millisecond more
// does), and they are the test's to stop. It is closed when the world ends.
func (w *World) Redis() *redis.Client { return w.rdb }

const (
	// firstStep and lastStep are by how much the clock is let run while
	// something is outstanding. What comes after an instant by rounding comes
	// within 1 µs, what waits for company within 1 ms.
	firstStep = time.Microsecond
	lastStep  = 1024 * time.Microsecond
	// mostSteps bounds what timers that are due again and again can hold up.
	mostSteps = 50 * time.Millisecond
)

// Advance lets d of virtual time pass, and with it all that happens meanwhile:
// timers become due and are delivered in the order of their instants, handlers
// that sleep wake, leases are extended or end, what failed is tried again. It
// returns when all that is due by then has been handled and settled, and every
// goroutine of the world waits for something. Advance(0) runs what is due now.
// Handlers that begin in it see what the test did before, and the test then
// sees what they did, without a lock; a handler that sleeps over the end of an
// Advance needs one.
//
// The clock may stand a millisecond or two past d: instants in Redis are
// whole microseconds and floats, so it goes on to the next microsecond or the
// one after it, and settlements wait a millisecond for company.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	if d < 0 {
		w.t.Fatalf("wakebelltest: Advance(%v): time goes forward only", d)
	}
	w.history.handOver()
	end := time.Now().Add(d)
	up := end.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	<-time.After(d + up.Sub(end))
	w.settle()
}

// settle lets the clock run, by steps, until nothing is outstanding or nothing
// comes of it.
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

// outstanding says whether a settlement is on its way, or a timer is due that
// a node may be about to take.
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

// background is a context for looking that outlives the test's.
func (w *World) background() context.Context { return context.WithoutCancel(w.t.Context()) }

// lastWords is how long, in virtual time, what ends may take to end: handlers
// that heed their contexts, and messages that protoactor counts for 5 s.
const lastWords = time.Minute

// end ends the world.
func (w *World) end() {
	w.t.Helper()
	if w.t.Failed() {
		w.t.Log(w.report())
	}
	for _, n := range w.nodes {
		n.Crash()
	}
	<-time.After(lastWords)
	for _, r := range w.history.running() {
		w.t.Errorf("wakebelltest: the handler of %s has not returned %v after its node ended: "+
			"it must return when its context ends", r, lastWords)
	}
	if err := w.rdb.Close(); err != nil {
		w.t.Errorf("wakebelltest: close the connection (it is the world's to close): %v", err)
	}
	w.server.Close()
}

package remote_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

var (
	hostileFor  = flag.Duration("hostile.for", 0, "how long TestHostile attacks; 0: some seconds")
	hostileSeed = flag.Uint64("hostile.seed", 1, "which attacks, and in which order")
)

// What attacks may cost in all.
const (
	// hostileMemory is what the node may grow by, 100 MiB, and as much again for the
	// attackers: they are in the same process, with what they send and do not read.
	hostileMemory = 200 << 20
	hostileLines  = 300
	// hostileAnswer bounds the wait for an answer of the honest peers, with room for
	// the stalls of a machine that has something else to do. Elsewhere each comes
	// within promptAnswer; what did not is logged.
	hostileAnswer = 10 * time.Second
	promptAnswer  = time.Second
	// hostileDelivery bounds the wait for a timer that is due.
	hostileDelivery = 20 * time.Second
)

// attack is one way to harm a node, which a hostile peer with a token has. It ends by
// itself, and leaves nothing of its own behind.
type attack struct {
	name string
	run  func(t *testing.T, n *node, random *rand.Rand)
}

// honest is the load beside the attacks: a peer that schedules, is answered, and
// handles what it has scheduled.
type honest struct {
	slowest  atomic.Int64 // of the answers, in ns
	answered atomic.Int64
	late     atomic.Int64 // those after promptAnswer
}

// load runs until the context ends.
func (h *honest) load(ctx context.Context, t *testing.T, n *node) {
	c := dialAs(t, n, secret)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handled := make(chan string, 16)
	end := subscribe(t, c, remote.Subscription{Topic: topic.Name(), Name: "honest", Credits: 16}, func(ctx context.Context, l *messages.Lease) error {
		select {
		case handled <- l.GetId():
		case <-ctx.Done():
		}
		return nil
	})
	defer func() { require.NoError(t, end()) }()
	for i := 0; ctx.Err() == nil; i++ {
		id := strconv.Itoa(i)
		scheduled := h.answer(ctx, t, func(ctx context.Context) error {
			_, err := topic.Schedule(ctx, c, "x", wakebell.ID(id))
			return err
		})
		if !scheduled || !h.answer(ctx, t, func(ctx context.Context) error {
			_, err := c.Stats(ctx, topic.Name())
			return err
		}) {
			return
		}
		select {
		case <-handled:
		case <-time.After(hostileDelivery):
			t.Errorf("the honest timer %s was not delivered within %v", id, hostileDelivery)
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// answer measures one request; false: it was not answered in time.
func (h *honest) answer(ctx context.Context, t *testing.T, ask func(context.Context) error) bool {
	t.Helper()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), hostileAnswer)
	defer cancel()
	began := time.Now()
	if !assertNoError(t, ask(bound), "an honest request was not answered") {
		return false
	}
	took := time.Since(began)
	h.slowest.Store(max(h.slowest.Load(), int64(took)))
	if took > promptAnswer {
		h.late.Add(1)
	}
	h.answered.Add(1)
	return true
}

func assertNoError(t *testing.T, err error, about string) bool {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", about, err)
	}
	return err == nil
}

// TestHostile mixes all attacks by seed, several at a time, while honest peers work.
// `make hostile FOR=30m SEED=1` runs it for long.
func TestHostile(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	n := serve(t, withMallory())
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.In(time.Hour)) // so that all that is begun at first is there
	require.NoError(t, err)
	goroutines, memory := settledGoroutines(), heap()

	ctx, cancel := context.WithCancel(t.Context())
	var of honest
	var load sync.WaitGroup
	load.Go(func() { of.load(ctx, t, n) })
	random := rand.New(rand.NewPCG(*hostileSeed, 0)) //nolint:gosec // by seed
	until := time.Now().Add(max(*hostileFor, 5*time.Second))
	var peak atomic.Uint64
	load.Go(func() { sample(ctx, &peak) })
	rounds, began := 0, time.Now()
	for len(attacks) > 0 && !t.Failed() && (rounds == 0 || time.Now().Before(until)) {
		t.Run(strconv.Itoa(rounds), func(t *testing.T) {
			order := random.Perm(len(attacks))
			for len(order) > 0 {
				together := order[:min(len(order), 1+random.IntN(3))]
				order = order[len(together):]
				t.Run("together", func(t *testing.T) {
					for _, i := range together {
						seed := random.Uint64()
						t.Run(attacks[i].name, func(t *testing.T) {
							t.Parallel()
							defer endTurnedAway(t)
							attacks[i].run(t, n, rand.New(rand.NewPCG(*hostileSeed, seed))) //nolint:gosec // by seed
						})
					}
				})
			}
		})
		rounds++
	}
	cancel()
	load.Wait()
	most, lines := peak.Load(), len(n.log.with(""))
	t.Logf("%d rounds of %d attacks, %d honest answers, the slowest after %v, %d later than %v, %d MiB more at most, %d log lines",
		rounds, len(attacks), of.answered.Load(), time.Duration(of.slowest.Load()), of.late.Load(), promptAnswer,
		int64(most-min(most, memory))>>20, lines) //nolint:gosec // of a machine
	require.Positive(t, of.answered.Load())
	require.LessOrEqual(t, most, memory+hostileMemory, "memory")
	require.LessOrEqual(t, lines, max(hostileLines, 60*(1+int(time.Since(began).Minutes()))), "log lines")
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+goroutineSlack })
}

// endTurnedAway ends an attack that the node has turned away.
func endTurnedAway(t *testing.T) {
	switch r := recover().(type) {
	case nil:
	case turnedAway:
		t.Logf("turned away: %v", r.err)
	default:
		panic(r)
	}
}

// sample notes the most that lives on the heap, while attacks go on.
func sample(ctx context.Context, peak *atomic.Uint64) {
	for ctx.Err() == nil {
		peak.Store(max(peak.Load(), heap()))
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// goroutineSlack is for the workers of the gateway, which stay once they were needed,
// and for the connections to Redis and the like, which come and go with the load.
const goroutineSlack = gateway.MaxRunning + 40

func settledGoroutines() int {
	runtime.GC()
	return runtime.NumGoroutine()
}

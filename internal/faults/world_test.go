package faults

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// scenario injects one kind of fault. Its run function returns when every timer is
// settled.
type scenario struct {
	name string
	ttl  time.Duration // of the leases
	run  func(*world)
}

// world is the state of a round.
type world struct {
	*testing.T
	round      int // from 1
	rng        *rand.Rand
	deliveries *DeliveryLog
	fleet      *Fleet
	versions   versions
	nodes      []*Node

	mu     sync.Mutex
	trials int

	suspects []suspect // processes beside those of the fleet that may be suspended

	pending atomic.Int64 // duplicates that are not sent yet
	played  int          // trials of the scenario boundaries
	found   *Judgement   // of the scenario itself; may be nil

	// divided means that there is more than one topic, or that it has shards.
	divided bool

	drained func() // after the nodes have ended, before what is left is examined; may be nil

	server *redistest.Server
	rdb    redis.UniversalClient // of the harness, without injected faults
}

// redis starts the round's server, and watches its response time.
func (w *world) redis(args ...string) {
	w.Helper()
	w.server = redistest.Start(w.T, args...)
	w.rdb = w.server.Client(w.T, patient)
	w.watch(w.rdb)
	w.suspectOf(suspect{send: w.server.Signal})
}

// config returns the config of a node on the round's server.
func (w *world) config() NodeConfig {
	c := NodeConfig{
		Topic: topic, MaxConcurrent: 10, LeaseTTL: w.deliveries.TTL, MaxPolling: time.Second,
		RetryFirst: 50 * time.Millisecond, MaxAttempts: 25, DrainTimeout: 5 * time.Second,
	}
	if w.server != nil {
		c.Redis = w.server.Addr
	}
	return c
}

// start starts nodes and waits until they handle timers.
func (w *world) start(n int, cfg NodeConfig) {
	w.Helper()
	began := len(w.nodes)
	for range n {
		w.nodes = append(w.nodes, w.fleet.Start(cfg))
	}
	for _, node := range w.nodes[began:] {
		node.Ready()
	}
}

// replace starts a node in place of one that has ended. It does not wait for it: a
// fault may hit a node while it starts.
func (w *world) replace(i int) {
	w.Helper()
	w.fleet.Program = w.versions.next(w.rng, w.tries())
	w.nodes[i] = w.fleet.Start(w.nodes[i].Config)
}

// tried counts a trial. Links and stalls count theirs concurrently.
func (w *world) tried() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trials++
}

// tries returns the number of trials so far.
func (w *world) tries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trials
}

// pause waits between faults.
func (w *world) pause(d time.Duration) {
	w.Helper()
	select {
	case <-time.After(d):
	case <-w.Context().Done():
		w.FailNow()
	}
}

// eventually waits for a condition and fails the test if it does not become true.
func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	require.Eventually(w, condition, settleLimit, settleTick, what)
}

const (
	watchEvery = 25 * time.Millisecond
	settleTick = 20 * time.Millisecond

	timelines    = "timers_timeline:"
	leaseRecords = "timers_leases:"
)

// watch records when Redis answers late without an injected fault: the machine did
// not schedule Redis or the harness.
func (w *world) watch(rdb redis.UniversalClient) {
	ctx, stop := context.WithCancel(w.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		least := min(stallAt, w.deliveries.TTL/6) // some scenarios have shorter leases than those of node processes
		last := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			_ = rdb.Ping(ctx).Err() // the scenario records its outages itself
			if now := time.Now(); now.Sub(last) > least {
				w.deliveries.RecordFault(Fault{Kind: Stall, From: last, To: now})
			}
			last = time.Now()
		}
	})
	w.Cleanup(func() { stop(); watching.Wait() })
}

// settled waits until Redis has no timer, drains the nodes, and checks that nothing
// is left of the topic.
func (w *world) settled(within time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), within)
	defer cancel()
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for w.pending.Load() > 0 || w.some(ctx) || ctx.Err() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.left(within)
			return
		}
	}
	w.drainAll()
	if w.drained != nil {
		w.drained()
	}
	w.readDead()
	w.empty()
}

// keys returns the keys of a kind: that of the topic, or those of all shards of topics
// that are divided or in a Cluster.
func (w *world) keys(ctx context.Context, kind string) []string {
	if !w.divided {
		return []string{kind + topic}
	}
	var mu sync.Mutex
	var all []string
	read := func(ctx context.Context, c *redis.Client) error {
		keys, err := c.Keys(ctx, kind+"*").Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys...)
		return err
	}
	var err error
	switch rdb := w.rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, read)
	case *redis.Client:
		err = read(ctx, rdb)
	}
	if ctx.Err() == nil {
		require.NoError(w, err)
	}
	return all
}

// some reports whether there may be a timer: also if the server does not say.
func (w *world) some(ctx context.Context) bool {
	n, err := w.timers(ctx)
	return err != nil || n > 0
}

// timers returns the number of timers.
func (w *world) timers(ctx context.Context) (n int64, err error) {
	for _, timeline := range w.keys(ctx, timelines) {
		more, err := w.rdb.ZCard(ctx, timeline).Result()
		if err != nil {
			return 0, err
		}
		n += more
	}
	return n, nil
}

// left fails the round for timers that still exist, and logs their histories.
func (w *world) left(after time.Duration) {
	w.Helper()
	for _, timeline := range w.keys(w.Context(), timelines) {
		timers := w.rdb.ZRangeWithScores(w.Context(), timeline, 0, 4).Val()
		if len(timers) == 0 {
			continue
		}
		w.Errorf("after %v, at %s, %s still has timers: %v", after, clock(time.Now()), timeline, timers)
		records := leaseRecords + strings.TrimPrefix(timeline, timelines)
		for _, z := range timers {
			id, _ := z.Member.(string)
			w.Errorf("%s  lease record %q", w.deliveries.History(id), w.rdb.HGet(w.Context(), records, id).Val())
		}
	}
}

// empty checks that Redis has nothing of the timers.
func (w *world) empty() {
	w.Helper()
	n, err := w.timers(w.Context())
	require.NoError(w, err)
	require.Zero(w, n, "timers are left")
	for _, key := range w.keys(w.Context(), "timers_payloads:") {
		require.Empty(w, w.rdb.HKeys(w.Context(), key).Val(), "payloads are left")
	}
	for _, key := range w.keys(w.Context(), leaseRecords) {
		leases := w.rdb.HKeys(w.Context(), key).Val()
		if len(leases) > 0 { // the field with the empty name is not a lease record
			require.Equal(w, []string{""}, leases, "lease records are left")
		}
	}
}

func (w *world) drainAll() {
	w.Helper()
	for _, n := range w.nodes {
		n.Ready()
		n.Drain()
	}
	w.nodes = nil
}

func (w *world) readDead() {
	w.Helper()
	for _, key := range w.keys(w.Context(), "timers_dead:") {
		letters, err := w.rdb.XRange(w.Context(), key, "-", "+").Result()
		require.NoError(w, err)
		for _, letter := range letters {
			id, _ := letter.Values["id"].(string)
			reason, _ := letter.Values["reason"].(string)
			w.deliveries.RecordDeadLetter(id, reason)
		}
	}
}

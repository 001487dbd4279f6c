package shards

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// killed ends a process at a command: nothing that it sends later reaches Redis, and the
// command may have, without its answer.
type killed struct {
	left     atomic.Int64 // commands
	executes bool         // the last one
}

func (k *killed) DialHook(next redis.DialHook) redis.DialHook { return next }

func (k *killed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if k.left.Load() > 0 {
			return next(ctx, cmds)
		}
		return &net.OpError{Op: "read", Err: net.ErrClosed}
	}
}

func (k *killed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		left := k.left.Add(-1)
		if left > 0 {
			return next(ctx, cmd)
		}
		if left == 0 && k.executes {
			_ = next(ctx, cmd)
		}
		err := &net.OpError{Op: "read", Err: net.ErrClosed}
		cmd.SetErr(err)
		return err
	}
}

// deliveries are what nodes have delivered, by id.
type deliveries struct {
	mu     sync.Mutex
	times  map[string]int
	bodies map[string]string
	keys   map[string][]string // ids in the order of their deliveries
	early  []string
	late   time.Duration
}

func (d *deliveries) note(l exchange.Lease, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times[l.ID]++
	d.bodies[l.ID] = string(l.Payload)
	late := now.Sub(l.Activation)
	if late < -time.Millisecond {
		d.early = append(d.early, l.ID)
	}
	d.late = max(d.late, late)
	if key := string(l.Payload); key[0] == 'k' {
		d.keys[key] = append(d.keys[key], l.ID)
	}
}

func (d *deliveries) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.times)
}

// TestReshardingSurvivesKills kills the process that moves timers 100 times, at random
// commands, while nodes handle the timers and clients schedule others.
func TestReshardingSurvivesKills(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t), wakebelltype.Keys{}, 2)
	const kills, plain, keys, perKey, replaced = 100, 3000, 20, 10, 100
	began := time.Now()
	want := 0
	var entries []timers.Entry
	for i := range plain {
		at := began.Add(time.Duration(rand.IntN(7_000)) * time.Millisecond)
		entries = append(entries, timers.Entry{ID: fmt.Sprint("p", i), Payload: []byte("plain"), At: at})
	}
	for i := range keys * perKey {
		key := fmt.Sprint("k", i%keys)
		at := began.Add(time.Duration(i/keys)*600*time.Millisecond + 300*time.Millisecond)
		entries = append(entries, timers.Entry{ID: fmt.Sprint("o", i), Key: key, Payload: []byte(key), At: at})
	}
	for i := range replaced {
		entries = append(entries, timers.Entry{ID: fmt.Sprint("r", i), Payload: []byte("old"), At: hour})
	}
	f.schedule(t, entries...)
	want += len(entries)
	f.startMoving(t, 5)

	d := &deliveries{times: map[string]int{}, bodies: map[string]string{}, keys: map[string][]string{}}
	ctx, stop := context.WithCancel(t.Context())
	var processes sync.WaitGroup
	defer processes.Wait()
	defer stop()
	for _, name := range f.names(t) {
		processes.Go(func() { f.handle(ctx, t, name, d) })
	}
	processes.Go(func() { // as a node does
		for ctx.Err() == nil {
			_, _ = f.DeliverAbandoned(ctx, f.topic)
			pause(ctx, whileMovingInTest)
		}
	})
	scheduled := make(chan int, 1)
	processes.Go(func() { scheduled <- f.keepScheduling(ctx, t, replaced) })

	for range kills {
		kill := &killed{executes: rand.IntN(2) == 0}
		kill.left.Store(rand.Int64N(40))
		rdb := server.Client(t)
		rdb.AddHook(kill)
		process := newStore(t, rdb, f.timers.Keys().Keys)
		process.bounds.timers = 1 + rand.IntN(20) // keys move in several steps
		for _, err := range process.Reshard(ctx, f.topic, 5) {
			if err != nil {
				break
			}
		}
	}
	want += <-scheduled
	var last Progress
	for p, err := range f.Reshard(ctx, f.topic, 5) {
		require.NoError(t, err)
		last = p
	}
	require.True(t, last.Done)
	require.Eventually(t, func() bool { return d.count() == want }, time.Minute, 10*time.Millisecond, "%d of %d", d.count(), want)
	stop()
	processes.Wait()
	t.Logf("at most %v late", d.late)
	require.Empty(t, d.early)
	for id, n := range d.times {
		require.Equal(t, 1, n, id)
		if id[0] == 'r' {
			require.Equal(t, "new", d.bodies[id])
		}
	}
	for key, ids := range d.keys {
		for i, id := range ids {
			require.Equal(t, fmt.Sprint("o", i*keys+atoi(key[1:])), id, "%s: %v", key, ids)
		}
	}
	require.Empty(t, f.in(t, sharding.Names(f.topic, 2)))
}

func atoi(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

const whileMovingInTest = 250 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// handle delivers the timers of a physical topic.
func (f *fixture) handle(ctx context.Context, t *testing.T, name string, d *deliveries) {
	stream := storetest.NewStream(f.timers.Source(name, timers.SourceOptions{}))
	for ctx.Err() == nil {
		r := stream.Request(50, time.Minute)
		r.Flow.PerKey = 1
		leases := stream.Run(t, r).Leases
		now := time.Now()
		var done []exchange.Settlement
		for _, l := range leases {
			d.note(l, now)
			done = append(done, storetest.Verdict(exchange.Ack, l))
		}
		if len(done) > 0 {
			stream.Settle(t, done...)
			continue
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// keepScheduling schedules new timers for some seconds, and replaces others once. It
// returns how many new ones it has scheduled.
func (f *fixture) keepScheduling(ctx context.Context, t *testing.T, replaced int) (n int) {
	s := f.other(t)
	end := time.Now().Add(3 * time.Second)
	for i := 0; time.Now().Before(end) || i < replaced; i++ {
		entries := []timers.Entry{
			{ID: fmt.Sprint("n", i), Payload: []byte("plain"), In: time.Duration(rand.IntN(3000)) * time.Millisecond},
			{ID: fmt.Sprint("due", i), Payload: []byte("plain")},
		}
		if i < replaced {
			entries = append(entries, timers.Entry{ID: fmt.Sprint("r", i), Payload: []byte("new")})
		}
		done, err := s.Schedule(ctx, f.topic, entries...)
		if err != nil {
			t.Errorf("schedule: %v", err)
			return n
		}
		if i < replaced && done[2].Outcome != wakebelltype.OutcomeReplaced {
			t.Errorf("r%d: %v", i, done[2].Outcome)
		}
		n += 2
		pause(ctx, 5*time.Millisecond)
	}
	return n
}

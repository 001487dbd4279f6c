package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	jobs    = wakebell.NewTopic[string]("jobs")
	runs    = wakebell.NewTopic[string]("runs")
	batches = wakebell.NewTopic[string]("batches")
	orders  = wakebell.NewTopic[string]("orders")
	mails   = queue.New[string]("mails", queue.DeduplicateBy(func(to string) string { return to }))

	errBroken = errors.New("broken")
	quiet     = slog.New(slog.DiscardHandler)
)

const (
	secret = "a-secret-of-sixteen-bytes"
	// patience bounds the waits for other processes.
	patience = 60 * time.Second
)

// node is a served System whose metrics are served, and clients of it.
type node struct {
	redis *redistest.Server
	rdb   *redis.Client
	sys   *wakebell.System
	peer  *remote.Client
	asked chan struct{} // receives when the actor is reminded
	holds chan struct{} // receives when a handler begins that ends with its lease, or
	ended chan struct{} // when this is closed

	metrics string // address
	serving string // address for peers
}

// startNode runs a node with everything that is measured until the end of the test.
func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{redis: redistest.Start(t), asked: make(chan struct{}, 1000), holds: make(chan struct{}, 1000), ended: make(chan struct{})}
	n.rdb = n.redis.Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 300*time.Millisecond, -1 })
	exported, err := telemetry.Start(t.Context(), telemetry.Flags{Address: "127.0.0.1:0"}, quiet)
	require.NoError(t, err)
	t.Cleanup(exported.Stop)
	n.metrics = exported.Metrics
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	n.sys, err = wakebell.New(actors, conntest.New(t, n.rdb, connection.Config{MeterProvider: exported.MeterProvider, Logger: quiet}), wakebell.Config{
		DrainTimeout: -1,
		Scheduler:    &recurring.SchedulerConfig{},
		Reminders:    &reminder.Config{Node: "n", AckTimeout: time.Second},
		Handlers: []wakebell.Handler{
			wakebell.Handle(jobs, n.work, wakebell.LeaseTTL(time.Second), wakebell.MaxAttempts(2), wakebell.RetryBackoff(10*time.Millisecond, 10*time.Millisecond)),
			wakebell.Handle(runs, n.work, wakebell.RateLimit(1, 10*time.Millisecond, 1)),
			wakebell.Handle(orders, n.work, wakebell.RateLimitByKey(1, 50*time.Millisecond, 1)),
			wakebell.HandleBatch(batches, func(_ context.Context, timers []wakebell.Timer[string]) error {
				if timers[0].Body == "fail" { // opens the breaker
					return wakebell.Reject(errBroken)
				}
				return nil
			}, wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.01, Deliveries: 1, OpenFor: 10 * time.Millisecond})),
			wakebell.HandleQueue(mails, func(context.Context, wakebell.Timer[string]) error { return nil }),
		},
	})
	require.NoError(t, err)
	server, err := remote.Serve(n.sys, remote.Config{Address: "127.0.0.1:0", Tokens: map[string]string{secret: "ops"}})
	require.NoError(t, err)
	require.NoError(t, n.sys.Start(t.Context()))
	t.Cleanup(func() {
		_ = n.sys.Stop() // handlers may be unfinished
		server.Stop()
	})
	n.serving = server.Address()
	n.peer, err = remote.Dial(t.Context(), n.serving, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{Config: remote.Config{Token: secret}})
	require.NoError(t, err)
	t.Cleanup(n.peer.Close)
	return n
}

// work does what the body says.
func (n *node) work(ctx context.Context, t wakebell.Timer[string]) error {
	switch t.Body {
	case "fail":
		return errBroken
	case "reject":
		return wakebell.Reject(errBroken)
	case "panic":
		if t.Attempt == 1 {
			panic(errBroken)
		}
	case "wait":
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(3 * time.Second):
		}
	case "hold":
		n.holds <- struct{}{}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ended:
		}
	}
	return nil
}

// loop uses everything that leaves a rate, over and over, until the test ends.
func (n *node) loop(t *testing.T) {
	t.Helper()
	shop, err := n.sys.ActorSystem().Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case string:
			_ = reminder.Set(c, "close", reminder.In(0), wrapperspb.String(m)) // it fails during the outage
		case *messages.Reminder:
			c.Respond(m.Ack())
			n.asked <- struct{}{}
		}
	}), "shop")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var looping sync.WaitGroup
	t.Cleanup(func() { cancel(); looping.Wait() })
	looping.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			// Errors are those of the outage.
			for _, body := range []string{"good", "fail"} {
				_, _ = jobs.Schedule(ctx, n.sys.Client(), body)
				_, _ = orders.Schedule(ctx, n.sys.Client(), "good", wakebell.Key("ada"))
			}
			_, _ = jobs.Schedule(ctx, n.peer, "good")
			part, id := jobs.Draft("good", wakebell.ID("part-"+strconv.Itoa(i))), wakebell.ID("join-"+strconv.Itoa(i))
			_, _ = n.sys.Client().Schedule(ctx, wakebell.Batch(part).Then(orders.Draft("good", id, wakebell.In(time.Minute)))...)
			_, _ = batches.Schedule(ctx, n.sys.Client(), "good")
			_, _ = batches.Schedule(ctx, n.sys.Client(), "fail")
			_, _ = mails.Publish(ctx, n.sys.Client().Queues(), "ada")
			_, _ = mails.Publish(ctx, n.sys.Client().Queues(), strconv.Itoa(i))
			_, _ = n.peer.Stats(ctx, jobs.Name())
			n.sys.ActorSystem().Root.Send(shop, "unpaid")
			n.pass(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// pass has two goroutines pass a gate, one after the other.
func (n *node) pass(ctx context.Context) {
	turn, err := n.sys.Gates().Acquire(ctx, "door")
	if err != nil {
		return
	}
	var second sync.WaitGroup
	second.Go(func() {
		_ = n.sys.Gates().With(ctx, "door", func(context.Context, uint64) error { return nil })
	})
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond): // the second waits
	}
	_ = turn.Release(ctx)
	second.Wait()
}

// incidents causes what a node seldom has.
func (n *node) incidents(t *testing.T) {
	t.Helper()
	ctx, client := t.Context(), n.sys.Client()
	require.NoError(t, n.rdb.Set(ctx, "timers_history:batches", "no stream", 0).Err(), "attempts that cannot be recorded")
	_, err := batches.Schedule(ctx, client, "fail")
	require.NoError(t, err)
	for _, body := range []string{"reject", "reject", "panic", "fail"} {
		_, err := jobs.Schedule(ctx, client, body)
		require.NoError(t, err)
	}
	n.eventually(t, func() bool { c := n.sys.Counters()["jobs"]; return c.Rejected >= 2 && c.HandlerRestarts >= 1 })
	dead, err := client.LastDead(ctx, "jobs", 10)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(dead), 2)
	_, err = client.Redrive(ctx, "jobs", wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Entry: dead[0].Entry}})
	require.NoError(t, err)
	_, err = client.DeleteDead(ctx, "jobs", wakebelltype.DeadFilter{Entry: dead[1].Entry})
	require.NoError(t, err)

	n.schedules(t)
	n.peers(t)
	_, err = n.sys.Gates().Acquire(ctx, "held") // until the end
	require.NoError(t, err)
	turn, err := n.sys.Gates().Acquire(ctx, "lost")
	require.NoError(t, err)
	_, err = n.sys.Gates().ForceRelease(ctx, "lost", turn.Fence())
	require.NoError(t, err)
	n.await(t, turn.Context().Done())
}

// schedules puts a schedule that overlaps itself, and one that has missed a run.
func (n *node) schedules(t *testing.T) {
	t.Helper()
	ctx, all := t.Context(), n.sys.Client().Schedules()
	overlapping := recurring.Rule{Every: time.Second, Overlap: recurring.OverlapSkip}
	require.NoError(t, all.Put(ctx, runs.Recurring("overlapping", overlapping, "wait")))
	require.NoError(t, all.Put(ctx, runs.Recurring("missed", recurring.Rule{Every: time.Hour}, "good")))
	n.eventually(t, func() bool { return n.sys.Counters()["runs"].Delivered >= 2 })
	past := time.Now().Add(-90 * time.Minute)
	require.NoError(t, n.rdb.HSet(ctx, "redbeat:missed", "meta", recur.Meta{LastRunAt: past, Runs: 1}.Bytes()).Err())
	require.NoError(t, n.rdb.ZAdd(ctx, "redbeat::schedule", redis.Z{Score: float64(past.Unix()), Member: "redbeat:missed"}).Err())
}

// peers connects one peer with a wrong token, and has the other exceed a bound.
func (n *node) peers(t *testing.T) {
	t.Helper()
	_, err := remote.Dial(t.Context(), n.serving, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{Config: remote.Config{Token: "another-secret-of-24-byt"}})
	require.ErrorIs(t, err, remote.ErrDenied)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := make(chan error, 100)
	var watching sync.WaitGroup
	for range 20 { // 16 are permitted
		watching.Go(func() {
			for _, err := range n.peer.Tail(ctx, "jobs") {
				if err != nil {
					refused <- err
					return
				}
			}
		})
	}
	select {
	case err := <-refused:
		require.Error(t, err)
	case <-time.After(patience):
		require.FailNow(t, "no call was refused")
	}
	cancel()
	watching.Wait()
}

// outage stops Redis while a handler runs, until the lease is lost.
func (n *node) outage(t *testing.T) {
	t.Helper()
	defer close(n.ended)
	_, err := jobs.Schedule(t.Context(), n.sys.Client(), "hold")
	require.NoError(t, err)
	select {
	case <-n.holds:
	case <-time.After(patience):
		require.FailNow(t, "no handler has begun")
	}
	n.redis.Pause()
	n.eventually(t, func() bool { return n.sys.Counters()["jobs"].Lost > 0 })
	n.redis.Resume()
}

func (n *node) eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond)
}

func (n *node) await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		require.FailNow(t, "it did not happen")
	}
}

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// These tests cover the six weaknesses that were shown in redis-message-queue, by
// their numbers. Package redisops/queue tests the fourth: at most 100 messages are
// reclaimed and poisoned per poll.

// Weakness 1: a handler with deduplication fails; the message is lost and its key
// suppresses others for an hour.
func TestQueueFailureNeitherLosesNorSuppresses(t *testing.T) {
	t.Parallel()
	q := queue.New[string]("q", queue.DeduplicateBy(func(s string) string { return s }), queue.FreeKeyOnFailure())
	attempts := 0
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error {
			attempts++
			return errors.New("always")
		}, wakebell.MaxAttempts(4)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		publish := func() bool {
			fresh, err := q.Publish(t.Context(), w.Client().Queues(), "x")
			require.NoError(t, err)
			return fresh
		}
		require.True(t, publish())
		w.Advance(2 * time.Second)
		require.Equal(t, 2, attempts, "the message is retried")
		require.False(t, publish(), "the key suppresses duplicates of a live message")
		w.Advance(5 * time.Minute)
		require.Equal(t, 4, attempts)
		require.True(t, publish(), "a message that failed finally frees its key")
	})
}

// Weakness 2: a handler that hangs with a heartbeat holds its message for ever, and
// does not notice the loss of its heartbeat.
func TestQueueHungHandlerIsEndedByDefault(t *testing.T) {
	t.Parallel()
	q := queue.New[string]("q")
	var causes []error
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(q, func(ctx context.Context, m wakebell.Timer[string]) error {
			if m.Attempt > 2 {
				return nil
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return ctx.Err()
		}),
	}}, func(t *testing.T, w *wakebelltest.World) {
		_, err := q.Publish(t.Context(), w.Client().Queues(), "x")
		require.NoError(t, err)
		w.Advance(61 * time.Minute)
		require.Len(t, causes, 1)
		require.ErrorIs(t, causes[0], wakebell.ErrLeaseTooOld)

		// Another client takes the lease; the next heartbeat notices it.
		require.NoError(t, w.Redis().Del(t.Context(), "q::processing:lease_tokens", "q::processing:lease_deadlines").Err())
		w.Advance(5 * time.Minute)
		require.Len(t, causes, 2)
		require.ErrorIs(t, causes[1], wakebell.ErrLeaseLost)
	})
}

// Weakness 3: no metrics, no hooks, polling, and 8 kB of Redis for each message in
// flight. (Hints are in the conformance suite.)
func TestQueueInFlightIsSmallAndCounted(t *testing.T) {
	t.Parallel()
	const n = 2000
	rdb := redistest.Start(t).Client(t)
	q := queue.New[string]("q")
	c := stacktest.Client(t, rdb, connection.Config{})
	memory := func() (bytes int) {
		info := rdb.Info(t.Context(), "memory").Val()
		_, rest, _ := strings.Cut(info, "\nused_memory_dataset:")
		_, err := fmt.Sscan(rest, &bytes)
		require.NoError(t, err)
		return bytes
	}
	before := memory()
	drafts := make([]queue.Draft, n)
	for i := range drafts {
		drafts[i] = q.Draft(fmt.Sprintf("%0100d", i))
	}
	_, err := c.Queues().Publish(t.Context(), drafts...)
	require.NoError(t, err)
	release := make(chan struct{})
	sys := stacktest.Serve(t, rdb, wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error {
		<-release
		return nil
	}, wakebell.MaxConcurrent(n)))
	stacktest.Eventually(t, func() bool { return sys.Counters()["q"].Delivered == n })
	require.Less(t, (memory()-before)/n, 3000, "bytes for each message in flight")
	close(release)
	stacktest.Eventually(t, func() bool { return sys.Counters()["q"].Acked == n })
}

// Weakness 5: without a visibility timeout, a crash loses the message in flight.
// Wakebell does so only with AtMostOnce.
func TestQueueCrashLosesNothingWithoutAtMostOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]wakebell.QueueHandlerOption{"default": nil, "at most once": {wakebell.AtMostOnce()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue.New[string]("q")
			began := 0
			wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
				wakebell.HandleQueue(q, func(ctx context.Context, _ wakebell.Timer[string]) error {
					if began++; began == 1 {
						<-ctx.Done()
					}
					return nil
				}, opts...),
			}}, func(t *testing.T, w *wakebelltest.World) {
				_, err := q.Publish(t.Context(), w.Client().Queues(), "x")
				require.NoError(t, err)
				w.Advance(time.Second)
				w.Crash()
				w.Restart()
				w.Advance(time.Hour)
				st, err := w.Client().Queues().Stats(t.Context(), q.Keys())
				require.NoError(t, err)
				if opts == nil {
					require.Equal(t, 2, began)
					require.Zero(t, st.Processing)
				} else {
					require.Equal(t, 1, began)
					require.EqualValues(t, 1, st.Unleased, "a lost message is counted")
				}
			})
		})
	}
}

// Weakness 6: dead letters have no id, no reason and no count.
func TestQueueDeadLettersHaveAnIDAReasonAndCount(t *testing.T) {
	t.Parallel()
	q := queue.New[string]("q")
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error { return errors.New("no luck") }, wakebell.MaxAttempts(3)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		published, err := w.Client().Queues().Publish(t.Context(), q.Draft("x"))
		require.NoError(t, err)
		w.Advance(time.Hour)
		n := 0
		for l, err := range w.Client().Queues().DeadLetters(t.Context(), q.Keys(), wakebelltype.Page{}) {
			require.NoError(t, err)
			n++
			require.Equal(t, published[0].ID, l.ID)
			require.Equal(t, "no luck", l.Reason)
			require.Equal(t, 3, l.Deliveries)
			require.WithinDuration(t, time.Now(), l.At, time.Hour)
			require.Equal(t, "x", string(l.Payload))
		}
		require.Equal(t, 1, n)
	})
}

// With lost replies to publishes and exchanges, mixed verdicts and a killed node, no
// message is lost and none is published twice.
func TestQueueUnderFaults(t *testing.T) {
	t.Parallel()
	const messages = 150
	proxy := faultproxy.Start(t, redistest.SharedAddr(t))
	var seen, lost atomic.Int32
	proxy.SetRule(func(command []string) faultproxy.Fate {
		if strings.EqualFold(command[0], "evalsha") && seen.Add(1)%4 == 0 {
			lost.Add(1)
			return faultproxy.Lose()
		}
		return faultproxy.Fate{}
	})
	rdb := redistest.Shared(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	q := queue.New[int](redistest.Name(t))
	var mu sync.Mutex
	ids, ended := map[int]map[string]bool{}, map[int]bool{}
	handler := wakebell.HandleQueue(q, func(_ context.Context, m wakebell.Timer[int]) error {
		mu.Lock()
		defer mu.Unlock()
		if ids[m.Body] == nil {
			ids[m.Body] = map[string]bool{}
		}
		ids[m.Body][m.ID] = true
		switch {
		case m.Body%5 == 0:
			return wakebell.Reject(errors.New("never"))
		case m.Body%5 == 1 && m.Attempt == 1:
			return wakebell.RetryIn(time.Millisecond)
		}
		ended[m.Body] = true
		return nil
	}, wakebell.LeaseTTL(3*time.Second), wakebell.MaxConcurrent(10), wakebell.MaxAttempts(1000))
	doomed := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	require.NoError(t, doomed.Start(t.Context()))
	stacktest.Serve(t, rdb, handler)
	c := stacktest.Client(t, rdb, connection.Config{})
	for i := range messages {
		var opts []queue.PublishOption
		if i%2 == 0 {
			opts = append(opts, queue.DeduplicationKey(fmt.Sprint(i)))
		}
		fresh, err := q.Publish(t.Context(), c.Queues(), i, opts...)
		require.NoError(t, err)
		require.True(t, fresh, "a retry receives the answer of the first try")
		if i == messages/2 {
			require.NoError(t, testhook.Kill(doomed))
		}
	}
	plain := stacktest.Client(t, redistest.Shared(t), connection.Config{})
	require.Eventually(t, func() bool {
		st, err := plain.Queues().Stats(t.Context(), q.Keys())
		return err == nil && st.Pending+st.Processing == 0
	}, time.Minute, 20*time.Millisecond)
	require.Greater(t, lost.Load(), int32(10))
	mu.Lock()
	defer mu.Unlock()
	dead := map[string]int{}
	for l, err := range plain.Queues().DeadLetters(t.Context(), q.Keys(), wakebelltype.Page{}) {
		require.NoError(t, err)
		dead[string(l.Payload)]++
	}
	for i := range messages {
		require.Len(t, ids[i], 1, "%d was published once", i)
		if i%5 == 0 {
			require.Equal(t, 1, dead[fmt.Sprint(i)], i)
		} else {
			require.True(t, ended[i], i)
		}
	}
}

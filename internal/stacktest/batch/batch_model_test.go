package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// fate is what the handler of the model does with a timer in one attempt.
type fate string

const (
	fateAck     fate = "ack"
	fateNack    fate = "nack"
	fateReject  fate = "reject"
	fateSettle  fate = "settle" // before the handler returns an error
	fateCancel  fate = "cancel" // while the handler runs
	fateReplace fate = "replace"
)

var lastFates = []fate{fateAck, fateReject, fateSettle, fateCancel, fateReplace}

// batchModel knows for each timer the fates of its attempts, of which each but the last
// is a nack, and what was delivered.
type batchModel struct {
	topic  wakebell.Topic[string]
	client *wakebell.Client
	plan   map[string][]fate

	mu        sync.Mutex
	delivered map[string]int
	largest   int
}

// handle carries out the fates of a batch.
func (m *batchModel) handle(ctx context.Context, timers []wakebell.Timer[string]) error {
	m.mu.Lock()
	m.largest = max(m.largest, len(timers))
	var todo []fate
	for _, t := range timers {
		plan := m.plan[t.ID]
		todo = append(todo, plan[min(m.delivered[t.ID], len(plan)-1)])
		m.delivered[t.ID]++
	}
	m.mu.Unlock()
	verdicts := wakebell.BatchError{}
	var errs []error
	for i, t := range timers {
		switch todo[i] {
		case fateAck:
		case fateNack:
			verdicts[t.ID] = errors.New("nack")
		case fateReject:
			verdicts[t.ID] = wakebell.Reject(errors.New("reject"))
		case fateSettle:
			errs = append(errs, t.Settle(ctx, nil))
			verdicts[t.ID] = errors.New("ignored")
		case fateCancel:
			_, err := m.client.Cancel(ctx, m.topic.Name(), t.ID)
			errs = append(errs, err)
		case fateReplace:
			_, err := m.topic.Schedule(ctx, m.client, "x", wakebell.ID(t.ID), wakebell.In(time.Hour))
			errs = append(errs, err)
			verdicts[t.ID] = errors.New("superseded")
		}
	}
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
	return verdicts
}

// want returns the counters that the plans lead to.
func (m *batchModel) want() (c wakebelltype.Counters) {
	for _, plan := range m.plan {
		c.Delivered += int64(len(plan))
		c.Retried += int64(len(plan)) - 1
		switch plan[len(plan)-1] {
		case fateAck, fateSettle:
			c.Acked++
		case fateReject:
			c.DeadLettered++
		case fateCancel:
			c.Cancelled++
		case fateReplace:
			c.Superseded++
		}
	}
	return c
}

// TestEachLeaseOfBatchIsSettledByItsVerdict compares batches of random timers with a
// model: each delivery has exactly the end that the handler gave it.
func TestEachLeaseOfBatchIsSettledByItsVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &batchModel{topic: wakebell.NewTopic[string]("t"), plan: map[string][]fate{}, delivered: map[string]int{}}
		ids := stacktest.Numbered(rapid.IntRange(1, 40).Draw(rt, "timers"))
		for _, id := range ids {
			for range rapid.IntRange(0, 2).Draw(rt, "nacks") {
				m.plan[id] = append(m.plan[id], fateNack)
			}
			m.plan[id] = append(m.plan[id], rapid.SampledFrom(lastFates).Draw(rt, "last"))
		}
		size := rapid.IntRange(1, 15).Draw(rt, "size")
		options := []wakebell.HandlerOption{
			wakebell.BatchSize(size), wakebell.MaxConcurrent(rapid.IntRange(1, 3).Draw(rt, "concurrent")),
			wakebell.BatchWait(rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, time.Second}).Draw(rt, "wait")),
			wakebell.RetryBackoff(time.Millisecond, time.Second),
		}
		if rapid.Bool().Draw(rt, "middleware") {
			options = append(options, wakebell.WithBatch(func(next wakebell.BatchFunc) wakebell.BatchFunc { return next }))
		}
		var got wakebelltype.Counters
		stacktest.Virtually(t, func(t *testing.T) {
			rdb, _ := redistest.Embedded(t)
			m.client = stacktest.Client(t, rdb, connection.Config{})
			stacktest.ScheduleAll(t, m.client, m.topic, ids)
			sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{wakebell.HandleBatch(m.topic, m.handle, options...)}})
			require.NoError(t, sys.Start(t.Context()))
			<-time.After(20 * time.Second)
			require.NoError(t, sys.Stop())
			got = sys.Counters()["t"]
		})
		require.Equal(rt, m.want(), wakebelltype.Counters{
			Delivered: got.Delivered, Retried: got.Retried, Acked: got.Acked, DeadLettered: got.DeadLettered,
			Cancelled: got.Cancelled, Superseded: got.Superseded, Lost: got.Lost, Crashed: got.Crashed, Released: got.Released,
		})
		require.LessOrEqual(rt, m.largest, size)
		require.Zero(rt, got.Held)
	})
}

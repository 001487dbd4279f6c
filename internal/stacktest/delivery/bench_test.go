package delivery_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

// BenchmarkDelivery delivers due timers of 100 bytes to a no-op handler, through the
// whole stack.
func BenchmarkDelivery(b *testing.B) {
	for _, concurrent := range []int{5, 50, 200} {
		b.Run(fmt.Sprintf("max-concurrent=%d", concurrent), func(b *testing.B) {
			benchmarkDelivery(b, func(topic wakebell.Topic[[]byte], handled func(n int)) wakebell.Handler {
				return wakebell.Handle(topic, func(context.Context, wakebell.Timer[[]byte]) error {
					handled(1)
					return nil
				}, wakebell.MaxConcurrent(concurrent))
			})
		})
	}
	b.Run("batch=100,middleware", func(b *testing.B) {
		benchmarkDelivery(b, func(topic wakebell.Topic[[]byte], handled func(n int)) wakebell.Handler {
			return wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[[]byte]) error {
				handled(len(timers))
				return nil
			}, wakebell.BatchSize(100), wakebell.MaxConcurrent(5), wakebell.WithBatch(func(next wakebell.BatchFunc) wakebell.BatchFunc { return next }))
		})
	})
	for _, size := range []int{10, 100} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			benchmarkDelivery(b, func(topic wakebell.Topic[[]byte], handled func(n int)) wakebell.Handler {
				return wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[[]byte]) error {
					handled(len(timers))
					return nil
				}, wakebell.BatchSize(size), wakebell.MaxConcurrent(5))
			})
		})
	}
}

func benchmarkDelivery(b *testing.B, handler func(topic wakebell.Topic[[]byte], handled func(n int)) wakebell.Handler) {
	topic := wakebell.NewTopic[[]byte](redistest.Name(b))
	rdb := redistest.Shared(b)
	var handled atomic.Int64
	done := make(chan struct{})
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(b, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		handler(topic, func(n int) {
			if handled.Add(int64(n)) == int64(b.N) {
				close(done)
			}
		}),
	}})
	require.NoError(b, err)
	body := bytes.Repeat([]byte("x"), 100)
	drafts := make([]wakebell.Draft, 0, 500)
	for i := range b.N {
		if drafts = append(drafts, topic.Draft(body)); len(drafts) == cap(drafts) || i == b.N-1 {
			_, err := sys.Client().Schedule(b.Context(), drafts...)
			require.NoError(b, err)
			drafts = drafts[:0]
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, sys.Start(b.Context()))
	<-done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "timers/s")
	require.NoError(b, sys.Stop())
	counters := sys.Counters()[topic.Name()]
	b.ReportMetric(float64(counters.Exchanges)/float64(b.N), "exchanges/timer")
}

// BenchmarkLateness schedules one timer at a time on an idle topic, due at once or
// after 20 ms, and reports how late it is claimed by Redis's clock.
func BenchmarkLateness(b *testing.B) {
	for name, in := range map[string]time.Duration{"now": 0, "in-20ms": 20 * time.Millisecond} {
		b.Run(name, func(b *testing.B) { benchmarkLateness(b, in) })
	}
}

func benchmarkLateness(b *testing.B, in time.Duration) {
	topic := wakebell.NewTopic[string](redistest.Name(b))
	fired := make(chan time.Duration, 1)
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(b, redistest.Shared(b), connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error {
			fired <- t.Lateness()
			return nil
		}),
	}})
	require.NoError(b, err)
	require.NoError(b, sys.Start(b.Context()))
	var late []time.Duration
	for b.Loop() {
		_, err := topic.Schedule(b.Context(), sys.Client(), "x", wakebell.In(in))
		require.NoError(b, err)
		late = append(late, <-fired)
	}
	require.NoError(b, sys.Stop())
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1e3, "ms-late-p50")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1e3, "ms-late-p99")
	b.ReportMetric(float64(min(late[0], 0).Microseconds())/1e3, "ms-early")
}

// BenchmarkGateway schedules by message, with 64 requests in flight.
func BenchmarkGateway(b *testing.B) {
	p := stacktest.Posted(b, redistest.Shared(b), wakebell.Config{})
	request := stacktest.Message(b, p.Topic.Draft("x", wakebell.In(time.Hour)))
	places := make(chan struct{}, 64)
	counter := p.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *messages.ScheduleResponse:
			<-places
		case *messages.Error:
			b.Error(wakebell.AnswerError(m))
			<-places
		}
	}))
	for n := 0; b.Loop(); n++ {
		places <- struct{}{}
		p.Actors.Root.RequestWithCustomSender(p.Gateway(), &messages.ScheduleRequest{
			Topic: request.GetTopic(), Id: strconv.Itoa(n), Body: request.GetBody(), When: request.GetWhen(),
		}, counter)
	}
	for range cap(places) { // wait for all answers
		places <- struct{}{}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	require.NoError(b, p.Actors.Root.StopFuture(counter).Wait())
}

// BenchmarkQueue delivers messages of 100 bytes to a no-op handler. It is
// BenchmarkDelivery for queues.
func BenchmarkQueue(b *testing.B) {
	const batch = 50_000
	for range b.N {
		b.StopTimer()
		rdb := redistest.Start(b).Client(b)
		q := queue.New[string]("bench")
		c := stacktest.Client(b, rdb, connection.Config{})
		drafts := make([]queue.Draft, batch)
		for i := range drafts {
			drafts[i] = q.Draft(fmt.Sprintf("%0100d", i))
		}
		began := time.Now()
		_, err := c.Queues().Publish(b.Context(), drafts...)
		require.NoError(b, err)
		b.ReportMetric(batch/time.Since(began).Seconds(), "published/s")
		var handled atomic.Int64
		done := make(chan struct{})
		sys := stacktest.Build(b, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error {
				if handled.Add(1) == batch {
					close(done)
				}
				return nil
			}, wakebell.MaxConcurrent(200)),
		}})
		b.StartTimer()
		began = time.Now()
		require.NoError(b, sys.Start(b.Context()))
		<-done
		b.ReportMetric(batch/time.Since(began).Seconds(), "handled/s")
		b.StopTimer()
		require.NoError(b, sys.Stop())
		b.StartTimer()
	}
}

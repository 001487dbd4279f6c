package remote_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// BenchmarkSchedule schedules one request after another, and 64 in parallel, over the
// network and in the process.
func BenchmarkSchedule(b *testing.B) {
	n := serve(b, withToken())
	for name, c := range map[string]wakebell.TimerClient{"here": n.Client(), "elsewhere": dial(b, n)} {
		for _, flight := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, flight), func(b *testing.B) {
				var next atomic.Int64
				var wg sync.WaitGroup
				took := make([]time.Duration, b.N)
				b.ResetTimer()
				for range flight {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							began := time.Now()
							if _, err := n.topic.Schedule(b.Context(), c, "x", wakebell.In(time.Hour)); err != nil {
								b.Error(err)
								return
							}
							took[i-1] = time.Since(began)
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
				reportQuantiles(b, took)
			})
		}
	}
}

// reportQuantiles reports the duration of a request: the median and the 99th
// percentile.
func reportQuantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for name, q := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		at := took[min(len(took)*q/100, len(took)-1)]
		b.ReportMetric(float64(at)/float64(time.Millisecond), name)
	}
}

// BenchmarkSubscribe delivers leases to one subscriber with 1,000 credits, and to one
// local handler with a concurrency of 1,000.
func BenchmarkSubscribe(b *testing.B) {
	due := func(b *testing.B, n *node) {
		b.Helper()
		drafts := make([]wakebell.Draft, 0, b.N)
		for i := range b.N {
			drafts = append(drafts, n.topic.Draft("x", wakebell.ID(fmt.Sprint(i))))
		}
		_, err := n.Client().Schedule(b.Context(), drafts...)
		require.NoError(b, err)
	}
	b.Run("here", func(b *testing.B) {
		n := serve(b, withToken())
		due(b, n)
		var handled atomic.Int64
		done := make(chan struct{})
		b.ResetTimer()
		require.NoError(b, n.Add(b.Context(), wakebell.Handle(n.topic, func(context.Context, wakebell.Timer[string]) error {
			if handled.Add(1) == int64(b.N) {
				close(done)
			}
			return nil
		}, wakebell.MaxConcurrent(1000))))
		<-done
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
	})
	b.Run("elsewhere", func(b *testing.B) {
		n := serve(b, withToken())
		due(b, n)
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		var handled atomic.Int64
		b.ResetTimer()
		err := dial(b, n).Subscribe(ctx, remote.Subscription{Topic: n.topic.Name(), Name: "s", Credits: 1000},
			func(context.Context, *messages.Lease) error {
				if handled.Add(1) == int64(b.N) {
					b.StopTimer()
					cancel()
				}
				return nil
			})
		require.NoError(b, err)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
	})
}

package queue

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

func benchQueue(b *testing.B, n int) *fixture {
	b.Helper()
	f := queueOn(b, redistest.Start(b).Client(b), "bench")
	f.fill(b, n)
	return f
}

func (f *fixture) fill(b *testing.B, n int) {
	b.Helper()
	messages := make([]Message, n)
	for i := range messages {
		messages[i] = NewMessage([]byte(fmt.Sprintf("%0100d", i)), "")
	}
	_, _, err := f.Publish(b.Context(), PublishOptions{}, messages...)
	require.NoError(b, err)
}

// BenchmarkQueueExchange settles a batch and claims the next, and reports the cost
// of a message in Redis.
func BenchmarkQueueExchange(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			f := benchQueue(b, 20_000)
			left, handled, spent := 20_000, 0, 0.0
			micros := func() float64 { return storetest.ScriptMicros(b, f.rdb.Info(b.Context(), "commandstats").Val()) }
			before := micros()
			var settle []exchange.Settlement
			b.ReportAllocs()
			for b.Loop() {
				if left < size {
					b.StopTimer()
					spent += micros() - before
					f.fill(b, 20_000)
					left, before = 20_000, micros()
					b.StartTimer()
				}
				r := f.Request(size, time.Minute)
				r.Settle = settle
				reply := f.Run(b, r)
				settle = settle[:0]
				for _, l := range reply.Leases {
					settle = append(settle, storetest.Verdict(exchange.Ack, l))
				}
				handled, left = handled+len(settle), left-size
			}
			spent += micros() - before
			b.ReportMetric(spent/float64(handled), "redis-µs/message")
		})
	}
}

// BenchmarkQueueAck settles one message at a time while many are in processing, at
// the ends and in the middle of their list, and reports the cost of an ack in
// Redis.
func BenchmarkQueueAck(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		for _, place := range []string{"oldest", "newest", "middle"} {
			b.Run(fmt.Sprintf("%d/%s", n, place), func(b *testing.B) {
				f := benchQueue(b, n)
				var leases []exchange.Lease
				claim := func() {
					for len(leases) < n {
						leases = append(leases, f.Claim(b, min(1000, n-len(leases))).Leases...)
					}
				}
				claim()
				micros := func() float64 { return storetest.ScriptMicros(b, f.rdb.Info(b.Context(), "commandstats").Val()) }
				before, spent, acked := micros(), 0.0, 0
				for b.Loop() {
					if len(leases) <= n*9/10 {
						b.StopTimer()
						spent += micros() - before
						f.fill(b, n-len(leases))
						claim()
						before = micros()
						b.StartTimer()
					}
					i := map[string]int{"oldest": 0, "newest": len(leases) - 1, "middle": len(leases) / 2}[place]
					require.Empty(b, f.Settle(b, storetest.Verdict(exchange.Ack, leases[i])).Refused)
					leases = append(leases[:i], leases[i+1:]...)
					acked++
				}
				spent += micros() - before
				b.ReportMetric(spent/float64(acked), "redis-µs/ack")
			})
		}
	}
}

// BenchmarkQueuePublish publishes one by one and in batches.
func BenchmarkQueuePublish(b *testing.B) {
	for _, size := range []int{1, 500} {
		for _, keyed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/keyed=%v", size, keyed), func(b *testing.B) {
				f := benchQueue(b, 0)
				payload := []byte(fmt.Sprintf("%0100d", 1))
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					messages := make([]Message, size)
					for i := range messages {
						key := ""
						if n++; keyed {
							key = strconv.Itoa(n)
						}
						messages[i] = NewMessage(payload, key)
					}
					_, _, err := f.Publish(b.Context(), PublishOptions{}, messages...)
					require.NoError(b, err)
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}

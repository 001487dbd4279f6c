package timers

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// BenchmarkExchange settles a batch and claims the next, and reports the cost of a
// timer in Redis: the time of its scripts, and the CPU time of its process, which
// other work on the machine affects less.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(size), func(b *testing.B) { benchmarkExchange(b, size, 100, exchange.Flow{}) })
	}
	for name, flow := range map[string]exchange.Flow{
		"rate": {RateLimit: 1_000_000, RatePer: time.Millisecond}, "inflight": {MaxInFlight: 1000},
	} {
		for _, size := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) { benchmarkExchange(b, size, 100, flow) })
		}
	}
	b.Run("100/1KiB", func(b *testing.B) { benchmarkExchange(b, 100, 1<<10, exchange.Flow{}) })
	b.Run("100/2KiB", func(b *testing.B) { benchmarkExchange(b, 100, 2<<10, exchange.Flow{}) })
	b.Run("25/10KiB", func(b *testing.B) { benchmarkExchange(b, 25, 10<<10, exchange.Flow{}) })
	b.Run("2/100KiB", func(b *testing.B) { benchmarkExchange(b, 2, 100<<10, exchange.Flow{}) })
}

// benchmarkExchange exchanges size timers at once, whose payloads have that many bytes,
// under flow control that holds none back.
func benchmarkExchange(b *testing.B, size, bytes int, flow exchange.Flow) {
	rdb := redistest.Start(b).Client(b)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(b, err)
	src := s.Source("bench", SourceOptions{})
	ctx := b.Context()
	loaded := min(20_000, 40<<20/bytes)
	payload := make([]byte, bytes)
	load := func(round int) {
		n := loaded
		entries := make([]Entry, n)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprintf("timer-%08d-%08d", round, i), Payload: payload, At: time.UnixMilli(1.7e12 + int64(i))}
		}
		_, err := s.Schedule(ctx, "bench", entries...)
		require.NoError(b, err)
	}
	request := &exchange.Request{Incarnation: "bench", Want: size, LeaseTTL: 30 * time.Second, Flow: flow}
	var spent, used float64
	cpu := func() float64 { return cpuSeconds(b, rdb.Info(ctx, "cpu").Val()) * 1e6 }
	handled := 0
	round := 0
	load(round)
	left := loaded
	before, idle := storetest.ScriptMicros(b, rdb.Info(ctx, "commandstats").Val()), cpu()
	b.ReportAllocs()
	for b.Loop() {
		if left < size {
			b.StopTimer()
			spent += storetest.ScriptMicros(b, rdb.Info(ctx, "commandstats").Val()) - before
			used += cpu() - idle
			round++
			load(round)
			left = loaded
			before, idle = storetest.ScriptMicros(b, rdb.Info(ctx, "commandstats").Val()), cpu()
			b.StartTimer()
		}
		request.Sequence++
		reply, err := src.Exchange(ctx, request)
		if err != nil || len(reply.Leases) != size {
			b.Fatalf("%v, %v", reply, err)
		}
		request.Settle = request.Settle[:0]
		for _, l := range reply.Leases {
			request.Settle = append(request.Settle, exchange.Settlement{Held: storetest.Held(l), Verdict: exchange.Ack})
		}
		handled += size
		left -= size
	}
	used += cpu() - idle
	spent += storetest.ScriptMicros(b, rdb.Info(ctx, "commandstats").Val()) - before
	b.ReportMetric(spent/float64(handled), "redis-µs/timer")
	b.ReportMetric(used/float64(handled), "redis-cpu-µs/timer")
}

// BenchmarkRateLimit claims 1,000 timers a second from a long backlog, as soon as the
// answers allow it, and reports which part of a core that costs Redis.
func BenchmarkRateLimit(b *testing.B) {
	const due, page = 1_000_000, 10_000
	rdb := redistest.Start(b).Client(b)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(b, err)
	entries := make([]Entry, page)
	for from := 0; from < due; from += page {
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprintf("timer-%08d", from+i), Payload: make([]byte, 100), At: time.UnixMilli(1.7e12 + int64(i))}
		}
		_, err := s.Schedule(b.Context(), "bench", entries...)
		require.NoError(b, err)
	}
	src := s.Source("bench", SourceOptions{})
	request := &exchange.Request{
		Incarnation: "bench", Want: 500, LeaseTTL: 30 * time.Second, Flow: exchange.Flow{RateLimit: 1000, RatePer: time.Second},
	}
	claim := func() *exchange.Reply {
		request.Sequence++
		reply, err := src.Exchange(b.Context(), request)
		require.NoError(b, err)
		request.Settle = request.Settle[:0]
		for _, l := range reply.Leases {
			request.Settle = append(request.Settle, exchange.Settlement{Held: storetest.Held(l), Verdict: exchange.Ack})
		}
		return reply
	}
	cpu := func() float64 { return cpuSeconds(b, rdb.Info(b.Context(), "cpu").Val()) }
	idle, began := cpu(), time.Now()
	<-time.After(2 * time.Second)
	idle = (cpu() - idle) / time.Since(began).Seconds() * 100
	for claim().Held == 0 {
		continue // takes the burst
	}
	before, handled := cpu(), 0
	began = time.Now()
	for b.Loop() {
		reply := claim()
		handled += len(reply.Leases)
		<-time.After(reply.Held)
	}
	took := time.Since(began).Seconds()
	b.ReportMetric((cpu()-before)/took*100, "%-of-a-core")
	b.ReportMetric(idle, "%-when-idle")
	b.ReportMetric(float64(handled)/took, "timers/s")
	b.ReportMetric(float64(b.N)/took, "exchanges/s")
}

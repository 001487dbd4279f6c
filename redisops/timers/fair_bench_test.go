package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// BenchmarkFairKeys settles and claims timers in exchanges of 100, of topics with PerKey(10,000):
// with and without FairKeys, from a backlog of one key, of 100 keys and of a key for each ten
// timers. Sorted is how many timers a second the first exchanges with FairKeys sort, by the CPU
// time of Redis.
func BenchmarkFairKeys(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000} {
		for name, flow := range map[string]exchange.Flow{"plain": {PerKey: 10_000}, "fair": {PerKey: 10_000, FairKeys: 1}} {
			b.Run(fmt.Sprintf("%s-%d", name, keys), func(b *testing.B) { benchmarkFair(b, flow, keys) })
		}
	}
}

func benchmarkFair(b *testing.B, flow exchange.Flow, keys int) {
	const size, loaded = 100, 100_000
	l, cpu := newKeyedLoad(b)
	var leases []exchange.Lease
	run := func() int {
		l.seq++
		r := &exchange.Request{Incarnation: "bench", Sequence: l.seq, Want: size, LeaseTTL: 30 * time.Second, Flow: flow}
		for _, lease := range leases {
			r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, lease))
		}
		reply, err := l.src.Exchange(b.Context(), r)
		require.NoError(b, err)
		leases = reply.Leases
		return len(leases)
	}
	handled, left, used, sorting, sorted := 0, 0, -cpu(), 0.0, 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			used += cpu()
			run() // settles the rest
			require.Empty(b, leases)
			l.load(b, loaded, func(i int) string { return fmt.Sprintf("key-%08d", i%keys) })
			left = loaded
			if flow.Fair() {
				before := cpu()
				for n := 0; n < size; sorted++ {
					n = run()
					left -= n
				}
				sorting += cpu() - before
			}
			used -= cpu()
			b.StartTimer()
		}
		n := run()
		handled += n
		left = max(left-n, 0)
	}
	used += cpu()
	b.ReportMetric(used/float64(handled), "redis-µs/timer")
	if sorted > 0 {
		b.ReportMetric(sorting/float64(sorted)/1e3, "ms/sorting-exchange")
		b.ReportMetric(float64(sorted), "sorting-exchanges")
	}
}

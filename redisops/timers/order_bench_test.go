package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// BenchmarkPerKey settles and claims timers in exchanges of 100, as BenchmarkExchange
// does: without keys, with a key each, with one key for all, and without keys beside
// 100,000 timers that wait for one key.
func BenchmarkPerKey(b *testing.B) {
	for _, kind := range []string{"plain", "distinct", "plain-beside-parked", "distinct-beside-parked"} {
		b.Run(kind, func(b *testing.B) { benchmarkPerKey(b, kind) })
	}
	b.Run("one", benchmarkOneKey)
}

// BenchmarkPerKeyAgainstPlain alternates between exchanges of 100 timers without keys and
// of 100 with a key each, and reports the ratio of their throughputs.
func BenchmarkPerKeyAgainstPlain(b *testing.B) {
	const size, turn, loaded = 100, 50, 100_000
	plain, cpu := newKeyedLoad(b)
	distinct := &keyedLoad{s: plain.s, src: plain.s.Source("keys", SourceOptions{}), topic: "keys"}
	var took, used [2]float64
	left := 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			plain.load(b, loaded, func(int) string { return "" })
			distinct.load(b, loaded, func(n int) string { return fmt.Sprintf("key-%08d-%08d", distinct.round, n) })
			left = loaded
			b.StartTimer()
		}
		left -= size * turn
		for i, l := range []*keyedLoad{plain, distinct} {
			began, before := time.Now(), cpu()
			var leases []exchange.Lease
			for range turn {
				leases = l.exchange(b, i, size, leases)
				require.Len(b, leases, size)
			}
			l.exchange(b, i, 0, leases)
			took[i] += time.Since(began).Seconds()
			used[i] += cpu() - before
		}
	}
	b.ReportMetric(took[0]/took[1], "distinct/plain")
	b.ReportMetric(used[0]/float64(b.N*size*turn), "redis-µs/plain")
	b.ReportMetric(used[1]/float64(b.N*size*turn), "redis-µs/distinct")
}

type keyedLoad struct {
	s     *Timers
	src   *TimerSource
	topic string
	seq   uint64
	round int
}

func newKeyedLoad(b *testing.B) (*keyedLoad, func() float64) {
	rdb := redistest.Start(b).Client(b)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(b, err)
	l := &keyedLoad{s: s, src: s.Source("bench", SourceOptions{}), topic: "bench"}
	return l, func() float64 { return cpuSeconds(b, rdb.Info(b.Context(), "cpu").Val()) * 1e6 }
}

func (l *keyedLoad) load(b *testing.B, n int, key func(i int) string) {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{ID: fmt.Sprintf("timer-%08d-%08d", l.round, i), Key: key(i), Payload: make([]byte, 100), At: time.UnixMilli(1.7e12 + int64(i))}
	}
	l.round++
	_, err := l.s.Schedule(b.Context(), l.topic, entries...)
	require.NoError(b, err)
}

func (l *keyedLoad) exchange(b *testing.B, perKey, want int, leases []exchange.Lease) []exchange.Lease {
	l.seq++
	r := &exchange.Request{Incarnation: "bench", Sequence: l.seq, Want: want, LeaseTTL: 30 * time.Second, Flow: exchange.Flow{PerKey: perKey}}
	for _, lease := range leases {
		r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, lease))
	}
	reply, err := l.src.Exchange(b.Context(), r)
	require.NoError(b, err)
	return reply.Leases
}

func benchmarkPerKey(b *testing.B, kind string) {
	const size, loaded = 100, 20_000
	l, cpu := newKeyedLoad(b)
	key, perKey := func(int) string { return "" }, 0
	if kind != "plain" {
		perKey = 1
	}
	if kind == "distinct" || kind == "distinct-beside-parked" {
		key = func(i int) string { return fmt.Sprintf("key-%08d", i) }
	}
	if kind == "plain-beside-parked" || kind == "distinct-beside-parked" {
		l.load(b, 100_000, func(int) string { return "blocked" })
		for parked := int64(0); parked < 99_999; {
			l.exchange(b, perKey, size, nil)
			stats, err := l.s.Stats(b.Context(), "bench")
			require.NoError(b, err)
			parked = stats.Parked
		}
	}
	var leases []exchange.Lease
	handled, left, used := 0, 0, 0.0
	for b.Loop() {
		if left < size {
			b.StopTimer()
			l.load(b, loaded, key)
			left, used = loaded, used-cpu()
			b.StartTimer()
		}
		leases = l.exchange(b, perKey, size, leases)
		require.Len(b, leases, size)
		handled += size
		if left -= size; left < size {
			used += cpu()
		}
	}
	if left >= size {
		used += cpu()
	}
	b.ReportMetric(float64(handled)/b.Elapsed().Seconds(), "timers/s")
	b.ReportMetric(used/float64(handled), "redis-µs/timer")
}

// benchmarkOneKey settles one timer and claims the next, all of one key.
func benchmarkOneKey(b *testing.B) {
	l, cpu := newKeyedLoad(b)
	l.load(b, 100_000, func(int) string { return "k" })
	for l.exchange(b, 1, 1, nil); ; {
		stats, err := l.s.Stats(b.Context(), "bench")
		require.NoError(b, err)
		if stats.Due == 0 {
			break
		}
		l.exchange(b, 1, 1, nil)
	}
	leases := []exchange.Lease{}
	info, err := l.s.Get(b.Context(), "bench", fmt.Sprintf("timer-%08d-%08d", 0, 0))
	require.NoError(b, err)
	leases = append(leases, exchange.Lease{ID: info.ID, Token: exchange.Token(l.token(b, info.ID))})
	left, used := 100_000, -cpu()
	for b.Loop() {
		if left--; left == 0 {
			b.StopTimer()
			used += cpu()
			l.load(b, 100_000, func(int) string { return "k" })
			left, used = 100_000, used-cpu()
			b.StartTimer()
		}
		leases = l.exchange(b, 1, 1, leases)
		require.Len(b, leases, 1)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "timers/s")
	b.ReportMetric((used+cpu())/float64(b.N), "redis-µs/timer")
}

func (l *keyedLoad) token(b *testing.B, id string) string {
	score, err := l.s.RDB.ZScore(b.Context(), l.src.timeline, id).Result()
	require.NoError(b, err)
	return fmt.Sprintf("%.17g", score)
}

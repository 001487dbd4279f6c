package guard

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/wakebelltype"
)

// service is simulated: up to capacity requests at once take latency each, and more
// take as much longer.
type service struct {
	capacity float64
	latency  time.Duration
	fails    bool
}

func (s service) takes(running int) time.Duration {
	return time.Duration(float64(s.latency) * max(1, float64(running)/s.capacity))
}

// calls are the calls that run, by their ends.
type calls []call

type call struct{ began, ends time.Time }

func (c calls) Len() int           { return len(c) }
func (c calls) Less(i, j int) bool { return c[i].ends.Before(c[j].ends) }
func (c calls) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *calls) Push(x any)        { *c = append(*c, x.(call)) }
func (c *calls) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// node keeps as many calls running as its limiter permits.
type node struct {
	limiter *Limiter
	bound   int
	now     time.Time
	running calls
}

// run handles n calls and returns the limits during the last half of them.
func (n *node) run(s service, count int, jitter func() float64) (low, high int) {
	low = n.bound
	for i := range count {
		for len(n.running) < n.limiter.Limit(n.bound) {
			takes := s.takes(len(n.running) + 1)
			heap.Push(&n.running, call{n.now, n.now.Add(time.Duration(float64(takes) * jitter()))})
		}
		c := heap.Pop(&n.running).(call)
		n.now = c.ends
		n.limiter.Record(n.now, Sample{Took: n.now.Sub(c.began), Failed: s.fails, Running: len(n.running) + 1}, n.bound)
		if i > count/2 && n.limiter.probed == 0 {
			low, high = min(low, n.limiter.Limit(n.bound)), max(high, n.limiter.Limit(n.bound))
		}
	}
	return low, high
}

func steady() float64 { return 1 }

// varied returns factors of 0.5 to 1.5.
func varied() func() float64 {
	random := rand.New(rand.NewPCG(1, 2))
	return func() float64 { return 0.5 + random.Float64() }
}

func newNode(set wakebelltype.Adaptive, bound int) *node {
	now := time.Unix(0, 0)
	return &node{limiter: NewLimiter(set, now), bound: bound, now: now}
}

var adaptive = wakebelltype.Adaptive{Min: 2, Slowdown: 1.5, FailureRatio: 0.1}

// TestLimiterConvergesToCapacity has services of different capacities and speeds.
func TestLimiterConvergesToCapacity(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{5, 20, 100, 400} {
		for _, latency := range []time.Duration{time.Millisecond, time.Second} {
			low, high := newNode(adaptive, 1000).run(service{capacity: float64(capacity), latency: latency}, 50_000, steady)
			require.GreaterOrEqual(t, low, capacity*9/10, "capacity %d", capacity)
			require.LessOrEqual(t, high, capacity*2, "capacity %d", capacity)
			low, high = newNode(adaptive, 1000).run(service{capacity: float64(capacity), latency: latency}, 50_000, varied())
			require.GreaterOrEqual(t, low, capacity/2, "capacity %d", capacity)
			require.LessOrEqual(t, high, capacity*3, "capacity %d", capacity)
		}
	}
}

// TestLimiterFollowsItsService has a service that loses capacity, becomes slower, fails
// and recovers.
func TestLimiterFollowsItsService(t *testing.T) {
	t.Parallel()
	n := newNode(adaptive, 1000)
	phase := func(s service, least, most int) {
		t.Helper()
		low, high := n.run(s, 50_000, steady)
		require.GreaterOrEqual(t, low, least)
		require.LessOrEqual(t, high, most)
	}
	phase(service{capacity: 100, latency: time.Millisecond}, 90, 200)
	phase(service{capacity: 20, latency: time.Millisecond}, 18, 40)
	phase(service{capacity: 100, latency: time.Millisecond}, 90, 200)
	phase(service{capacity: 100, latency: 20 * time.Millisecond}, 90, 200)
	phase(service{capacity: 100, latency: time.Millisecond, fails: true}, 2, 2)
	phase(service{capacity: 100, latency: time.Millisecond}, 90, 200)
}

// TestLimiterDoesNotGrowUnused has fewer calls than the limit permits.
func TestLimiterDoesNotGrowUnused(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := NewLimiter(adaptive, now)
	for range 10_000 {
		now = now.Add(time.Second)
		l.Record(now, Sample{Took: time.Millisecond, Running: 1}, 1000)
	}
	require.Equal(t, 2, l.Limit(1000))
}

// TestLimiterStaysWithinItsBounds has latencies, failures and upper bounds of all kinds.
func TestLimiterStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := wakebelltype.Adaptive{
			Min: rapid.IntRange(1, 50).Draw(t, "min"), Slowdown: rapid.Float64Range(1.01, 10).Draw(t, "slowdown"),
			FailureRatio: rapid.Float64Range(0.01, 1).Draw(t, "ratio"),
		}
		now := time.Unix(0, 0)
		l := NewLimiter(set, now)
		for range rapid.IntRange(1, 50).Draw(t, "phases") {
			bound := rapid.IntRange(1, 100).Draw(t, "bound")
			s := Sample{
				Took: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took")), Failed: rapid.Bool().Draw(t, "failed"),
				Running: rapid.IntRange(1, 100).Draw(t, "running"),
				Further: rapid.Bool().Draw(t, "further"), Small: rapid.Bool().Draw(t, "small"),
			}
			for range 300 {
				now = now.Add(max(s.Took, 1))
				l.Record(now, s, bound)
				require.GreaterOrEqual(t, l.Limit(bound), min(set.Min, bound))
				require.LessOrEqual(t, l.Limit(bound), bound)
			}
		}
	})
}

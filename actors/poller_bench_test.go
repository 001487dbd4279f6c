package actors

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
)

// BenchmarkPoller handles timers from a source in memory that answers at once. It
// measures the cost of the poller and its handlers alone.
func BenchmarkPoller(b *testing.B) {
	for _, concurrent := range []int{5, 200} {
		b.Run(fmt.Sprintf("max-concurrent=%d", concurrent), func(b *testing.B) {
			benchmarkPoller(b, func(s poller.Source) poller.Topic { return topicOn(s, concurrent, acks) })
		})
	}
	for _, size := range []int{10, 100} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			benchmarkPoller(b, func(s poller.Source) poller.Topic {
				t := topicOn(s, 5, nil)
				t.HandleBatch = func(_ context.Context, batch []*poller.Delivery) []poller.Outcome {
					return make([]poller.Outcome, len(batch)) // acks
				}
				t.Batch.Size = size
				return t
			})
		})
	}
}

func benchmarkPoller(b *testing.B, topic func(poller.Source) poller.Topic) {
	source := &endlessSource{left: b.N, done: make(chan struct{})}
	b.ReportAllocs()
	rt, err := Start(actortest.QuietSystem(), Config{Name: "bench", Logger: actortest.DiscardLogger, Topics: []poller.Topic{topic(source)}})
	require.NoError(b, err)
	<-source.done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "timers/s")
	require.NoError(b, rt.Stop())
}

// endlessSource is a source with left due timers.
type endlessSource struct {
	mu            sync.Mutex
	left, settled int
	given         int
	done          chan struct{}
}

func (*endlessSource) Name() string  { return "endless" }
func (*endlessSource) Shard() string { return "" }
func (*endlessSource) RemoveOrphans(context.Context) (exchange.Swept, error) {
	return exchange.Swept{}, nil
}

func (s *endlessSource) Exchange(_ context.Context, r *exchange.Request) (*exchange.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := &exchange.Reply{Now: time.Now(), Remaining: r.LeaseTTL, Next: -1}
	n := min(r.Want, s.left)
	reply.Leases = make([]exchange.Lease, n)
	for i := range reply.Leases {
		s.given++
		reply.Leases[i] = exchange.Lease{ID: strconv.Itoa(s.given), Token: "1", Activation: reply.Now, Claims: 1}
	}
	if s.left -= n; s.left > 0 {
		reply.Next = 0
	}
	before := s.settled
	if s.settled += len(r.Settle); before < s.given && s.left == 0 && s.settled == s.given {
		close(s.done)
	}
	return reply, nil
}

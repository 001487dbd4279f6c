package delivery_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// meter counts the commands and connections of a node by the second.
type meter struct {
	mu      sync.Mutex
	began   time.Time
	seconds map[int]int
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.seconds = time.Now(), map[int]int{}
}

func (m *meter) sent() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seconds[int(time.Since(m.began)/time.Second)]++
}

// complete returns how many seconds are complete.
func (m *meter) complete() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(time.Since(m.began) / time.Second)
}

// busiest returns the largest count of one second, from a given second on.
func (m *meter) busiest(from int) (most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for second, n := range m.seconds {
		if second >= from {
			most = max(most, n)
		}
	}
	return most
}

// total returns the count of all seconds.
func (m *meter) total() (all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.seconds {
		all += n
	}
	return all
}

type meteredConn struct {
	net.Conn
	meter *meter
}

func (c meteredConn) Write(p []byte) (int, error) {
	c.meter.sent()
	return c.Conn.Write(p)
}

// While Redis is down, a node sends at most 50 commands a second, for any number of
// topics and with the client's own retries. When Redis is back, all topics continue
// within seconds.
func TestOutageIsProbedByFewTopics(t *testing.T) {
	t.Parallel()
	const topics, most, lasts = 1000, 50, 8 * time.Second
	const patience = 2 * time.Minute // of 1,000 topics, on a busy machine
	type outage struct {
		begin, end func(*testing.T, *redistest.Server, *redis.Client)
	}
	for name, o := range map[string]outage{
		"unreachable": {
			func(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.Kill() },
			func(t *testing.T, s *redistest.Server, _ *redis.Client) { s.Restart(t) },
		},
		"read only": { // each command is refused and sent three more times by the client
			func(t *testing.T, _ *redistest.Server, admin *redis.Client) {
				require.NoError(t, admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
			},
			func(t *testing.T, _ *redistest.Server, admin *redis.Client) {
				require.NoError(t, admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &meter{}
			m.reset()
			// A killed process loses nothing that it has written, so 1,000 topics do
			// not need to wait for the disk.
			server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
			rdb := server.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					m.sent()
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					return meteredConn{c, m}, err
				}
			})
			handled := make(chan string, topics)
			var handlers []wakebell.Handler
			var drafts []wakebell.Draft
			for i := range topics {
				topic := wakebell.NewTopic[string](fmt.Sprint("topic ", i))
				handlers = append(handlers, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
					handled <- timer.Topic
					return nil
				}))
				drafts = append(drafts, topic.Draft("x", wakebell.In(lasts)))
			}
			sys := stacktest.Serve(t, rdb, handlers...)
			require.Eventually(t, func() bool { return sys.Counters()["topic 999"].Exchanges > 0 }, patience, 100*time.Millisecond)
			scheduled, err := stacktest.Client(t, server.Client(t), connection.Config{}).Schedule(t.Context(), drafts...)
			require.NoError(t, err)
			require.Len(t, scheduled, topics)
			require.Greater(t, m.busiest(0), most, "more than the limit is sent without an outage")

			o.begin(t, server, server.Client(t))
			m.reset()
			// How soon all topics have noticed depends on the machine. A single
			// second without commands may be a stall of the whole machine.
			const quiet = 3
			require.Eventually(t, func() bool { return m.complete() >= quiet && m.busiest(m.complete()-quiet) <= most },
				patience, 100*time.Millisecond)
			m.reset()
			<-time.After(lasts)
			// On a busy machine, what one second should have had comes in the next one.
			require.LessOrEqual(t, m.total(), most*(m.complete()+1))
			stacktest.Eventually(t, func() bool { return m.busiest(1) > 0 }, "the node must keep trying")

			o.end(t, server, server.Client(t))
			seen := map[string]bool{}
			for len(seen) < topics {
				seen[stacktest.Receive(t, handled)] = true
			}
		})
	}
}

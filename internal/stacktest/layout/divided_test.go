package layout_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// severable is a hook that cuts a client from Redis.
type severable struct{ cut atomic.Bool }

func (s *severable) failure() error {
	if s.cut.Load() {
		return &net.OpError{Op: "write", Err: errors.New("cut by the test")}
	}
	return nil
}

func (s *severable) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *severable) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := s.failure(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (s *severable) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := s.failure(); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

// group is nodes that compete for the timers of the same topics, on an embedded Redis.
type group struct {
	t        *testing.T
	rdb      *redis.Client
	topics   []wakebell.Topic[int]
	handlers []wakebell.Handler

	mu      sync.Mutex
	worst   time.Duration // the largest lateness since the last call of late
	handled int
}

func newGroup(t *testing.T, topics int, handle func(context.Context, wakebell.Timer[int]) error, opts ...wakebell.HandlerOption) *group {
	t.Helper()
	rdb, _ := redistest.Embedded(t)
	g := &group{t: t, rdb: rdb}
	for i := range topics {
		topic := wakebell.NewTopic[int](fmt.Sprintf("topic-%d", i))
		g.topics = append(g.topics, topic)
		g.handlers = append(g.handlers, wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[int]) error {
			g.mu.Lock()
			g.worst = max(g.worst, time.Since(timer.Activation))
			g.handled++
			g.mu.Unlock()
			return handle(ctx, timer)
		}, opts...))
	}
	return g
}

// join starts a node with a client of its own.
func (g *group) join(s opened.Switches) (*wakebell.System, *severable) {
	options := *g.rdb.Options()
	rdb, link := redis.NewClient(&options), &severable{}
	rdb.AddHook(link)
	g.t.Cleanup(func() { _ = rdb.Close() })
	conn := conntest.Switched(g.t, rdb, connection.Config{}, s)
	return stacktest.Launch(g.t, stacktest.BuildOn(g.t, conn, wakebell.Config{Handlers: g.handlers})), link
}

// schedule lets a timer of each topic come due at every interval of a span.
func (g *group) schedule(every, span time.Duration) {
	c := stacktest.Client(g.t, g.rdb, connection.Config{})
	var drafts []wakebell.Draft
	for i, topic := range g.topics {
		for in := every; in <= span; in += every {
			drafts = append(drafts, topic.Draft(0, wakebell.In(in+time.Duration(i)*time.Millisecond)))
		}
	}
	_, err := c.Schedule(g.t.Context(), drafts...)
	require.NoError(g.t, err)
}

// late returns the largest lateness and the number of handled timers since the last call.
func (g *group) late() (worst time.Duration, handled int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	worst, handled = g.worst, g.handled
	g.worst, g.handled = 0, 0
	return worst, handled
}

// requireDivision requires that clients see the division of each topic, and that those
// that watch a topic receive the roles of its nodes. The nodes of one process have the
// same name in events.
func (g *group) requireDivision(nodes int) {
	g.t.Helper()
	c := stacktest.Client(g.t, g.rdb, connection.Config{})
	for _, topic := range g.topics {
		found, err := c.Overview(g.t.Context(), topic.Name())
		require.NoError(g.t, err)
		require.Len(g.t, found[0].Division, nodes)
		ctx, cancel := context.WithTimeout(g.t.Context(), 10*time.Second)
		roles := map[string]bool{}
		for e, err := range c.Tail(ctx, topic.Name()) {
			if err != nil {
				break
			}
			if e.Kind == wakebelltype.EventState {
				require.Equal(g.t, 5, e.State.Options.MaxConcurrent)
				require.NotZero(g.t, e.State.Started)
				if roles[e.State.Role] = true; len(roles) == 2 {
					break
				}
			}
		}
		cancel()
		require.Equal(g.t, map[string]bool{"primary": true, "fallback": true}, roles)
	}
}

// primaries requires that each topic has one primary among these nodes, and returns how
// many topics each has.
func (g *group) primaries(nodes ...*wakebell.System) []int {
	g.t.Helper()
	counts, primaries := make([]int, len(nodes)), map[string]int{}
	for i, node := range nodes {
		for _, health := range node.Health(g.t.Context()).Topics {
			switch health.Role {
			case "primary":
				counts[i]++
				primaries[health.Topic]++
			default:
				require.Equal(g.t, "fallback", health.Role, health.Topic)
			}
		}
	}
	for _, topic := range g.topics {
		require.Equal(g.t, 1, primaries[topic.Name()], topic.Name())
	}
	return counts
}

func empties(nodes ...*wakebell.System) (empty, peeks int64) {
	for _, node := range nodes {
		for _, c := range node.Counters() {
			empty, peeks = empty+c.Empty, peeks+c.Peeks
		}
	}
	return empty, peeks
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

func atOnce(context.Context, wakebell.Timer[int]) error { return nil }

// Nodes that compete for timers divide the topics; the topics of a node that stops or is
// cut off are taken over, and a node that joins gets its share.
func TestNodesDivideTheirTopics(t *testing.T) {
	t.Parallel()
	const topics, every = 6, 100 * time.Millisecond
	stacktest.Virtually(t, func(t *testing.T) {
		g := newGroup(t, topics, atOnce)
		var nodes []*wakebell.System
		var links []*severable
		add := func() {
			node, link := g.join(opened.Switches{})
			nodes, links = append(nodes, node), append(links, link)
		}
		for range 4 {
			add()
		}
		g.schedule(every, 45*time.Second)
		<-time.After(5 * time.Second)
		require.Less(t, g.primaries(nodes...)[0], topics)
		g.requireDivision(len(nodes))

		g.late()
		empty, peeks := empties(nodes...)
		<-time.After(5 * time.Second)
		worst, handled := g.late()
		empty2, peeks2 := empties(nodes...)
		require.Less(t, worst, 10*time.Millisecond)
		require.Less(t, float64(empty2-empty)/float64(handled), 0.3)
		require.Less(t, float64(peeks2-peeks)/float64(handled), 1.5)

		require.NoError(t, nodes[3].Stop())
		<-time.After(200 * time.Millisecond)
		counts := g.primaries(nodes[:3]...)
		worst, _ = g.late()
		require.Less(t, worst, 300*time.Millisecond, "the topics of a node that stops are handed over at once")

		dead := 0
		for i, n := range counts {
			if n > counts[dead] {
				dead = i
			}
		}
		links[dead].cut.Store(true)
		<-time.After(division.Lease + time.Second)
		rest := []*wakebell.System{nodes[(dead+1)%3], nodes[(dead+2)%3]}
		g.primaries(rest...)
		worst, handled = g.late()
		require.Less(t, worst, time.Second, "the fallbacks help before the announcement expires")
		require.Greater(t, handled, topics*int((division.Lease/every))-topics)
		<-time.After(5 * time.Second)
		worst, _ = g.late()
		require.Less(t, worst, 10*time.Millisecond)

		add()
		<-time.After(5 * time.Second)
		// The new node has a place in the order of each topic. How many of so few it is
		// first for is left to the hash.
		require.Equal(t, topics, sum(g.primaries(rest[0], rest[1], nodes[4])))
	})
}

// While the primary has no free slot, the other nodes handle timers that are due, so that
// all slots of all nodes are used.
func TestFallbacksHelpBusyPrimary(t *testing.T) {
	t.Parallel()
	const nodes, slots, rounds = 5, 3, 4
	stacktest.Virtually(t, func(t *testing.T) {
		began := make(chan time.Time, nodes*slots*rounds)
		g := newGroup(t, 1, func(_ context.Context, timer wakebell.Timer[int]) error {
			if timer.Body > 0 {
				began <- time.Now()
				<-time.After(time.Second)
			}
			return nil
		}, wakebell.MaxConcurrent(slots), wakebell.DeliveryWindow(0))
		var all []*wakebell.System
		for range nodes {
			node, _ := g.join(opened.Switches{})
			all = append(all, node)
		}
		g.schedule(20*time.Millisecond, 5*time.Second)
		<-time.After(6 * time.Second)
		g.primaries(all...)

		drafts := make([]wakebell.Draft, nodes*slots*rounds)
		for i := range drafts {
			drafts[i] = g.topics[0].Draft(1, wakebell.ID(strconv.Itoa(i)))
		}
		start := time.Now()
		_, err := stacktest.Client(t, g.rdb, connection.Config{}).Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		for i := range drafts {
			round := time.Duration(i/(nodes*slots)) * time.Second
			late := (<-began).Sub(start) - round
			require.Less(t, late, time.Duration(rounds)*100*time.Millisecond, "timer %d", i)
		}
		helped := int64(0)
		for _, node := range all {
			for _, c := range node.Counters() {
				helped += c.FallbackDelivered
			}
		}
		require.Greater(t, helped, int64(slots*rounds))
		<-time.After(2 * time.Second)
		synctest.Wait()
	})
}

// A single node announces nothing, and neither does one with NoDivision.
func TestUndividedTopicsHaveNoAnnouncements(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		stacktest.Virtually(t, func(t *testing.T) {
			g := newGroup(t, 2, atOnce)
			for range nodes {
				node, _ := g.join(opened.Switches{NoDivision: nodes > 1})
				defer func() {
					for _, health := range node.Health(t.Context()).Topics {
						require.Empty(t, health.Role)
					}
				}()
			}
			g.schedule(20*time.Millisecond, 5*time.Second)
			<-time.After(6 * time.Second)
			_, handled := g.late()
			require.Equal(t, 500, handled)
			require.Empty(t, g.rdb.Keys(t.Context(), "timers_nodes*").Val())
		})
	}
}

// Nodes that may not write announcements poll like a single one.
func TestNodesPollWithoutAnnouncements(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		g := newGroup(t, 1, atOnce)
		require.NoError(t, g.rdb.Set(t.Context(), "timers_nodes:topic-0", "of another type", 0).Err())
		for range 3 {
			node, _ := g.join(opened.Switches{})
			defer func() { require.Empty(t, node.Health(t.Context()).Topics[0].Role) }()
		}
		g.schedule(20*time.Millisecond, 5*time.Second)
		<-time.After(6 * time.Second)
		worst, handled := g.late()
		require.Equal(t, 250, handled)
		require.Less(t, worst, 60*time.Millisecond)
	})
}

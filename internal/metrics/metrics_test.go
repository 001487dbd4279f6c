package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// collector has a Metrics and reads what it has measured.
type collector struct {
	*Metrics
	reader *sdk.ManualReader
}

func newCollector(topics int) collector {
	reader := sdk.NewManualReader()
	return collector{New(Options{Provider: sdk.NewMeterProvider(sdk.WithReader(reader)), Topics: topics}), reader}
}

// values returns the values of a metric by the value of one of its labels.
func (c collector) values(t *testing.T, name string, label attribute.Key) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, c.reader.Collect(t.Context(), &all))
	values := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			add := func(set attribute.Set, value float64) {
				of, _ := set.Value(label)
				values[of.AsString()] += value
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Count)) //nolint:gosec // small
				}
			}
		}
	}
	return values
}

// handle measures a handler of a topic.
func (c collector) handle(topic string) {
	h := c.Handler(topic, false)
	h.Ended(h.Began(time.Now()), Handled)
}

func still() Node {
	return Node{
		Counters: func() map[string]wakebelltype.Counters { return nil },
		Outages:  func() []Outage { return nil },
	}
}

// Topics beyond the limit share a label: their counts are added up, and their ages are
// those of the worst. The worst topics keep their names.
func TestTopicsBeyondLimitAreFolded(t *testing.T) {
	t.Parallel()
	c := newCollector(2)
	counters, backlog := map[string]wakebelltype.Counters{}, []Backlog{}
	for i := range 5 {
		name := fmt.Sprint("topic-", i)
		c.handle(name)
		counters[name] = wakebelltype.Counters{Acked: 1, Delivered: 3, Repeated: 1, Held: 2}
		backlog = append(backlog, Backlog{
			Topic: name, Due: 10, OldestDue: time.Duration(i) * time.Minute, Nodes: int64(i), Ahead: []int64{0, 1, int64(i)},
			Parked: 2, Running: 3, Retrying: 4, Paused: i == 4,
		})
	}
	n := still()
	n.Counters = func() map[string]wakebelltype.Counters { return counters }
	n.Backlog = func(context.Context) ([]Backlog, error) { return backlog, nil }
	defer c.Observe(n)()
	// Without a node: topic-0. The latest of the others: topic-4.
	for metric, want := range map[string]map[string]float64{
		"wakebell.deliveries":             {"topic-0": 1, "topic-4": 1, Other: 3},
		"wakebell.backlog.due":            {"topic-0": 10, "topic-4": 10, Other: 30},
		"wakebell.backlog.parked":         {"topic-0": 2, "topic-4": 2, Other: 6},
		"wakebell.backlog.running":        {"topic-0": 3, "topic-4": 3, Other: 9},
		"wakebell.backlog.retrying":       {"topic-0": 4, "topic-4": 4, Other: 12},
		"wakebell.backlog.oldest_due.age": {"topic-0": 0, "topic-4": 240, Other: 180},
		"wakebell.topic.nodes":            {"topic-0": 0, "topic-4": 4},
		"wakebell.topic.paused":           {"topic-4": 1},
		"wakebell.leases.held":            {"": 10},
	} {
		require.Equal(t, want, c.values(t, metric, destination), metric)
	}
	require.Len(t, c.values(t, "wakebell.handler.duration.p99", destination), 3)
	require.Equal(t, map[string]float64{"first": 10, "repeated": 5}, c.values(t, "messaging.client.consumed.messages", attempt))
	require.Equal(t, map[string]float64{"1m": 0, "1h": 5, "24h": 10}, c.values(t, "wakebell.forecast.due", forecastWindow))
}

// A topic that gets its name, or loses it, takes along what was counted meanwhile only: no
// counter decreases, and their sum is right.
func TestCountersNeverDecreaseWhenNamesChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, count, worst := newCollector(1), int64(0), ""
		n := still()
		n.Counters = func() map[string]wakebelltype.Counters {
			return map[string]wakebelltype.Counters{"a": {Acked: count}, "b": {Acked: 10 * count}}
		}
		n.Backlog = func(context.Context) ([]Backlog, error) {
			return []Backlog{{Topic: "a", Dead: 1, Nodes: 1}, {Topic: worst, Dead: 2, Nodes: 1}}, nil
		}
		defer c.Observe(n)()
		for _, step := range []struct {
			worst string
			want  map[string]float64
		}{
			{"a", map[string]float64{"a": 1, Other: 10}},
			{"b", map[string]float64{"b": 10, Other: 12 - 1}},
			{"a", map[string]float64{"a": 1 + 1, Other: 11 + 10}},
		} {
			count, worst = count+1, step.worst
			got := c.values(t, "wakebell.deliveries", destination)
			require.Equal(t, step.want, got)
			<-time.After(2 * fresh)
		}
	})
}

// A topic that cannot be read has the class of its error, and no counts.
func TestFaultsOfTopicsAreReported(t *testing.T) {
	t.Parallel()
	c, n := newCollector(0), still()
	n.Backlog = func(context.Context) ([]Backlog, error) {
		return []Backlog{{Topic: "a", Due: 1}, {Topic: "b", Unreadable: true, Fault: ClassOf(wakebelltype.ErrWrongType)}, {Topic: "c", Unreadable: true}}, nil
	}
	defer c.Observe(n)()
	require.Equal(t, map[string]float64{"b": 1, "c": 1}, c.values(t, "wakebell.topic.fault", destination))
	require.Equal(t, map[string]float64{"wrong_type": 1, "other": 1}, c.values(t, "wakebell.topic.fault", errorType))
	require.Equal(t, map[string]float64{"": 2}, c.values(t, "wakebell.topics.unreadable", destination))
	require.Equal(t, map[string]float64{"a": 1}, c.values(t, "wakebell.backlog.due", destination))
}

// The gates and queues that are read are reported by each node, also without a holder here.
func TestGatesAndQueuesOfRedisAreReported(t *testing.T) {
	t.Parallel()
	c, n := newCollector(0), still()
	n.Version = "v1.2.3"
	n.Gates = func(context.Context) ([]GateState, error) {
		return []GateState{{Name: "door", Held: time.Minute, Waiting: 3}, {Name: "free", Waiting: 1}}, nil
	}
	n.Queues = func(context.Context) ([]Queue, error) {
		return []Queue{{Name: "mails", Depth: 5, Oldest: time.Minute, Nodes: 0}, {Name: "other", Nodes: -1}}, nil
	}
	defer c.Observe(n)()
	require.Equal(t, map[string]float64{"door": 60, "free": 0}, c.values(t, "wakebell.gate.held.age", gateName))
	require.Equal(t, map[string]float64{"door": 3, "free": 1}, c.values(t, "wakebell.gate.waiting", gateName))
	require.Equal(t, map[string]float64{"mails": 60, "other": 0}, c.values(t, "wakebell.queue.oldest.age", destination))
	require.Equal(t, map[string]float64{"mails": 0}, c.values(t, "wakebell.queue.nodes", destination))
	require.Equal(t, map[string]float64{"v1.2.3": 1}, c.values(t, "wakebell.build.info", version))
}

// While Redis hangs, a collection takes a second at most, and reports the last
// backlog with its age.
func TestCollectionDoesNotWaitForRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(0)
		var hangs atomic.Bool
		var readings atomic.Int64
		n := still()
		n.Backlog = func(ctx context.Context) ([]Backlog, error) {
			readings.Add(1)
			if hangs.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []Backlog{{Topic: "a", Due: 7}}, nil
		}
		n.Queues = func(ctx context.Context) ([]Queue, error) { <-ctx.Done(); return nil, ctx.Err() }
		end := c.Observe(n)
		require.Equal(t, map[string]float64{"a": 7}, c.values(t, "wakebell.backlog.due", destination))
		hangs.Store(true)
		for range 20 { // a minute and more
			<-time.After(3 * time.Second)
			began := time.Now()
			require.Equal(t, map[string]float64{"a": 7}, c.values(t, "wakebell.backlog.due", destination))
			require.Less(t, time.Since(began), 2*time.Second)
		}
		require.Greater(t, c.values(t, "wakebell.backlog.age", destination)[""], 60.0)
		require.Less(t, readings.Load(), int64(12), "one reading at a time")
		end()
		require.Empty(t, c.values(t, "wakebell.backlog.due", destination), "after the end")
	})
}

// The reading is repeated when it is too old, and sooner than that never.
func TestReadingsAreCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(0)
		var readings atomic.Int64
		n := still()
		n.Backlog = func(context.Context) ([]Backlog, error) {
			return []Backlog{{Topic: "a", Due: readings.Add(1)}}, nil
		}
		defer c.Observe(n)()
		for range 50 {
			c.values(t, "wakebell.backlog.due", destination)
			<-time.After(time.Second)
		}
		require.Equal(t, int64(10), readings.Load())
		require.Equal(t, 50*time.Second, Lifetime(10_000), "of many topics, 200 are read in a second")
	})
}

// The counters of a node that has ended are exported once more.
func TestLastCountersAreReported(t *testing.T) {
	t.Parallel()
	c, n := newCollector(0), still()
	n.Counters = func() map[string]wakebelltype.Counters { return map[string]wakebelltype.Counters{"a": {Acked: 5}} }
	n.RecordsFailed = func() (audit, topics int64) { return 1, 2 }
	c.Observe(n)()
	require.Equal(t, map[string]float64{"a": 5}, c.values(t, "wakebell.deliveries", destination))
	require.Equal(t, map[string]float64{"audit": 1, "topic": 2}, c.values(t, "wakebell.records.failed", recordKind))
}

// Without an SDK nothing is measured, and nothing is allocated.
func TestWithoutAnSDKNothingIsMeasured(t *testing.T) {
	require.Nil(t, New(Options{Provider: noop.NewMeterProvider()}))
	var off *Metrics
	global := New(Options{})
	source := &countingSource{}
	for _, m := range []*Metrics{off, global} {
		require.False(t, m.Handler("a", false).Measures())
		require.True(t, m.Begin(t.Context()).IsZero())
		measured := m.Source(source)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			m.Sent(t.Context(), Schedule, "a", 1, m.Begin(t.Context()), nil)
			_, _ = measured.Exchange(t.Context(), nil)
		}))
	}
	off.Gate("g").Granted(t.Context(), off, 0, false)
	off.Observe(still())()
	off.Fired(t.Context(), "a", 0)
	off.Bytes(t.Context(), 1, 1)
	off.Session(t.Context(), "link")()
}

// A measured source can be peeked at if the source can.
func TestMeasuredSourceKeepsItsMethods(t *testing.T) {
	t.Parallel()
	c := newCollector(0)
	source := &countingSource{err: fmt.Errorf("wrapped: %w", exchange.ErrUnavailable)}
	_, peeks := c.Source(source).(peeker)
	require.False(t, peeks)
	measured, peeks := c.Source(peekedSource{source}).(peeker)
	require.True(t, peeks)
	_, err := measured.Exchange(t.Context(), &exchange.Request{})
	require.ErrorIs(t, err, exchange.ErrUnavailable)
	source.err, source.reply = nil, &exchange.Reply{Leases: make([]exchange.Lease, 3)}
	_, err = measured.Exchange(t.Context(), &exchange.Request{Extend: make([]exchange.Held, 2)})
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"ok": 1, "unavailable": 1}, c.values(t, "wakebell.exchange.duration", result))
	measured.Watch(t.Context(), func(_ time.Time, _ exchange.PeekReply, err error) (next time.Time, ok bool) {
		require.ErrorIs(t, err, errPeeked)
		return next, false
	})
	_, err = measured.Peek(t.Context())
	require.ErrorIs(t, err, errPeeked)
}

type countingSource struct {
	reply *exchange.Reply
	err   error
}

func (s *countingSource) Name() string  { return "a" }
func (s *countingSource) Shard() string { return "" }
func (s *countingSource) Exchange(context.Context, *exchange.Request) (*exchange.Reply, error) {
	return s.reply, s.err
}

func (s *countingSource) RemoveOrphans(context.Context) (exchange.Swept, error) {
	return exchange.Swept{}, nil
}

var errPeeked = errors.New("peeked")

type peekedSource struct{ *countingSource }

func (peekedSource) Watch(_ context.Context, answered exchange.Answered) (stop func() (next time.Time)) {
	answered(time.Time{}, exchange.PeekReply{}, errPeeked)
	return nil
}

func (peekedSource) Peek(context.Context) (exchange.PeekReply, error) {
	return exchange.PeekReply{}, errPeeked
}

// A turn is counted once, and its age is reported while it is held.
func TestTurnsAreMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, turn := newCollector(0), new(int)
		defer c.Observe(still())()
		g := c.Gate("door")
		g.Granted(t.Context(), turn, time.Second, true)
		<-time.After(time.Minute)
		require.Equal(t, map[string]float64{"door": 60}, c.values(t, "wakebell.gate.held.age", gateName))
		g.Ended(t.Context(), turn, true)
		g.Ended(t.Context(), turn, false)
		require.Equal(t, map[string]float64{"door": 0}, c.values(t, "wakebell.gate.held.age", gateName))
		require.Equal(t, map[string]float64{"door": 1}, c.values(t, "wakebell.gate.hold", gateName))
		require.Equal(t, map[string]float64{"door": 1}, c.values(t, "wakebell.gate.turns.lost", gateName))
		require.Equal(t, map[string]float64{"door": 1}, c.values(t, "wakebell.gate.handovers", gateName))
	})
}

func TestBacklogOfShardsIsAdded(t *testing.T) {
	t.Parallel()
	b := Backlog{Topic: "t", Due: 1, Pending: 5, Dead: 1, Parked: 1, Running: 2, Retrying: 1, OldestDue: time.Second, Nodes: 2, Ahead: []int64{1, 2, 3}}
	shard := Backlog{Due: 2, Pending: 6, Dead: 2, Parked: 3, Running: 1, Retrying: 4, Paused: true, OldestDue: time.Minute, Nodes: 1, Ahead: []int64{10, 20, 30}}
	sum := b
	sum.Add(shard)
	require.Equal(t, Backlog{
		Topic: "t", Due: 3, Pending: 11, Dead: 3, Parked: 4, Running: 3, Retrying: 5, Paused: true, OldestDue: time.Minute, Nodes: 2, Ahead: []int64{11, 22, 33},
	}, sum)
	require.Equal(t, []int64{1, 2, 3}, b.Ahead, "the first is not changed")
	sum.Add(Backlog{Unreadable: true, Fault: "wrong_type"})
	require.Equal(t, Backlog{Topic: "t", Unreadable: true, Fault: "wrong_type"}, sum)
	sum.Add(shard)
	require.True(t, sum.Unreadable, "nothing is known of a topic of which a shard cannot be read")
}

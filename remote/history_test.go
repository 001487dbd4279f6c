package remote_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestHistoryAndThroughputOverNetwork compares both with what the node's own client
// reads.
func TestHistoryAndThroughputOverNetwork(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	n := serve(t, remote.Config{}, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.ID == "bad" {
			return wakebell.Reject(errors.New("no such account"))
		}
		return nil
	}, wakebell.History(wakebelltype.HistoryAll)))
	c, ctx := dial(t, n), t.Context()
	for _, id := range []string{"good", "bad", "fine"} {
		_, err := topic.Schedule(ctx, c, "x", wakebell.ID(id))
		require.NoError(t, err)
	}
	all := func(of wakebell.Operator, f wakebelltype.HistoryFilter, p wakebelltype.Page) (found []wakebelltype.Attempt) {
		for a, err := range of.History(ctx, topic.Name(), f, p) {
			require.NoError(t, err)
			found = append(found, a)
		}
		return found
	}
	eventually(t, func() bool { return len(all(c, wakebelltype.HistoryFilter{}, wakebelltype.Page{})) == 3 })
	want := all(n.Client(), wakebelltype.HistoryFilter{}, wakebelltype.Page{})
	for _, f := range []wakebelltype.HistoryFilter{
		{}, {ID: "bad"}, {Outcome: wakebelltype.EventAcked}, {Error: "account"}, {Last: 2}, {Since: time.Now().Add(-time.Hour)}, {Since: time.Now().Add(time.Hour)},
	} {
		require.Equal(t, all(n.Client(), f, wakebelltype.Page{}), all(c, f, wakebelltype.Page{}), "%+v", f)
	}
	require.Equal(t, want[1:], all(c, wakebelltype.HistoryFilter{}, wakebelltype.Page{After: want[0].Cursor}))
	require.Equal(t, want[:2], all(c, wakebelltype.HistoryFilter{}, wakebelltype.Page{Limit: 2}))
	require.True(t, slices.ContainsFunc(want, func(a wakebelltype.Attempt) bool { return a.ID == "bad" && a.Error == "no such account" }))
	for _, err := range c.History(ctx, topic.Name(), wakebelltype.HistoryFilter{Last: 1001}, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}

	sum := func(of wakebell.Operator) (all wakebelltype.ThroughputCounts) {
		found, err := of.Throughput(ctx, topic.Name(), 10*time.Minute)
		require.NoError(t, err)
		require.Equal(t, time.Minute, found.Step)
		require.Len(t, found.Points, 10)
		require.Equal(t, 9*time.Minute, found.Points[9].At.Sub(found.Points[0].At))
		for _, p := range found.Points {
			all.Scheduled, all.Handled, all.Dead = all.Scheduled+p.Scheduled, all.Handled+p.Handled, all.Dead+p.Dead
		}
		return all
	}
	eventually(t, func() bool { return sum(c) == wakebelltype.ThroughputCounts{Scheduled: 3, Handled: 2, Dead: 1} })
	require.Equal(t, sum(n.Client()), sum(c))
	_, err := c.Throughput(ctx, topic.Name(), time.Second)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// TestCountDueOverNetwork compares it with what the node's own client counts.
func TestCountDueOverNetwork(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	n := serve(t, remote.Config{})
	c, ctx := dial(t, n), t.Context()
	from := time.Now().Add(time.Hour)
	for i := range 6 {
		_, err := topic.Schedule(ctx, c, "x", wakebell.At(from.Add(time.Duration(i)*time.Minute)))
		require.NoError(t, err)
	}
	for _, of := range []wakebell.Operator{c, n.Client()} {
		counts, err := of.CountDue(ctx, topic.Name(), from, 2*time.Minute, 4)
		require.NoError(t, err)
		require.Equal(t, []int64{2, 2, 2, 0}, counts)
		for _, n := range []int{-1, 0, 1501} {
			_, err = of.CountDue(ctx, topic.Name(), from, time.Minute, n)
			require.ErrorIs(t, err, wakebell.ErrInvalid)
		}
	}
}

// TestRecentCountsAndAnswersOfNodesOverNetwork compares them with those of the node's own
// client.
func TestRecentCountsAndAnswersOfNodesOverNetwork(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	n := serve(t, remote.Config{}, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }))
	c, ctx := dial(t, n), t.Context()
	for range 3 {
		_, err := topic.Schedule(ctx, c, "x")
		require.NoError(t, err)
	}
	recent := func(c wakebell.Operator) wakebelltype.ThroughputCounts {
		all, err := c.Overview(ctx, topic.Name())
		require.NoError(t, err)
		all[0].Recent.At = time.Time{}
		return all[0].Recent
	}
	eventually(t, func() bool { return recent(c).Handled == 3 })
	require.Equal(t, recent(n.Client()), recent(c))
	require.Positive(t, recent(c).Lateness)

	answers, err := c.AskNodes(ctx, topic.Name())
	require.NoError(t, err)
	require.Len(t, answers, 1)
	own, err := n.Client().AskNodes(ctx, topic.Name())
	require.NoError(t, err)
	require.Equal(t, own[0].Node, answers[0].Node)
	require.Equal(t, own[0].State.Version, answers[0].State.Version)
	require.Equal(t, topic.Name(), answers[0].Topic)
}

// TestReportsOfNodesOverNetwork compares what nodes have reported of a topic, read from Redis
// and through a node.
func TestReportsOfNodesOverNetwork(t *testing.T) {
	t.Parallel()
	n := serve(t, remote.Config{})
	name := redistest.Name(t)
	report := `9e9 {"breaker":"open","breaker_reason":"no route","expire_after_ns":90000000000,"longest":[{"id":"x","attempt":2,"since":"2026-01-02T03:04:05.000006Z"}]}`
	require.NoError(t, redistest.Shared(t).HSet(t.Context(), "timers_reports:"+name, "web-1/4711/k3", report).Err())
	here, err := n.Client().Overview(t.Context(), name)
	require.NoError(t, err)
	run, found := here[0].Run("x")
	require.True(t, found)
	require.Equal(t, "web-1/4711/k3", run.Node)
	elsewhere, err := dial(t, n).Overview(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, here[0].Reports, elsewhere[0].Reports)
	require.Equal(t, 90*time.Second, elsewhere[0].Reports[0].State.ExpireAfter)
}

// TestHistoryAndThroughputOfQueueOverNetwork does the same for a queue.
func TestHistoryAndThroughputOfQueueOverNetwork(t *testing.T) {
	t.Parallel()
	mail := queue.New[string](redistest.Name(t))
	n := serve(t, remote.Config{}, wakebell.HandleQueue(mail, func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.Body == "bad" {
			return wakebell.Reject(errors.New("no such account"))
		}
		return nil
	}, wakebell.History(wakebelltype.HistoryAll)))
	ctx, here, elsewhere := t.Context(), n.Client().Queues(), dial(t, n).Queues()
	_, err := mail.PublishAll(ctx, elsewhere, "good", "bad", "fine")
	require.NoError(t, err)
	history := func(of queue.Operator, f wakebelltype.HistoryFilter, p wakebelltype.Page) []wakebelltype.Attempt {
		return all(t, of.History(ctx, mail.Keys(), f, p), func(*wakebelltype.Attempt) {})
	}
	eventually(t, func() bool { return len(history(elsewhere, wakebelltype.HistoryFilter{}, wakebelltype.Page{})) == 3 })
	want := history(here, wakebelltype.HistoryFilter{}, wakebelltype.Page{})
	for _, f := range []wakebelltype.HistoryFilter{{}, {ID: want[1].ID}, {Outcome: wakebelltype.EventDead}, {Error: "account"}, {Last: 2}} {
		require.Equal(t, history(here, f, wakebelltype.Page{}), history(elsewhere, f, wakebelltype.Page{}), "%+v", f)
	}
	require.Equal(t, want[1:2], history(elsewhere, wakebelltype.HistoryFilter{}, wakebelltype.Page{After: want[0].Cursor, Limit: 1}))
	for _, last := range []int{-1, 1001} {
		for _, err := range elsewhere.History(ctx, mail.Keys(), wakebelltype.HistoryFilter{Last: last}, wakebelltype.Page{}) {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
		}
	}
	throughput := func(of queue.Operator) (sum wakebelltype.ThroughputCounts) {
		found, err := of.Throughput(ctx, mail.Keys(), 10*time.Minute)
		require.NoError(t, err)
		for _, p := range found.Points {
			sum.Scheduled, sum.Handled, sum.Dead = sum.Scheduled+p.Scheduled, sum.Handled+p.Handled, sum.Dead+p.Dead
		}
		return sum
	}
	eventually(t, func() bool {
		return throughput(elsewhere) == wakebelltype.ThroughputCounts{Scheduled: 3, Handled: 2, Dead: 1}
	})
	require.Equal(t, throughput(here), throughput(elsewhere))
	_, err = elsewhere.Throughput(ctx, mail.Keys(), time.Second)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// A node whose Redis user has no right to the channels of a topic asks the nodes of the others,
// and says so.
func TestUnaskedTopicsOverNetwork(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "node", "reset", "on", ">secret", "~*", "+@all", "&wakebell*", "&*shop*").Err())
	o := *admin.Options()
	o.Username, o.Password, o.Protocol = "node", "secret", 2
	rdb := redis.NewClient(&o)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	sys, err := wakebell.New(actorSystem(), conntest.New(t, rdb, connection.Config{Logger: quiet}), wakebell.Config{})
	require.NoError(t, err)
	n := &node{System: sys}
	n.server, err = remote.Serve(sys, remote.Config{})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() {
		_ = sys.Stop()
		n.server.Stop()
	})
	c, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	answers, err := c.AskNodes(t.Context(), "bank", "shop")
	require.Empty(t, answers)
	require.ErrorIs(t, err, wakebell.ErrChannelDenied)
	var unasked *wakebelltype.UnaskedError
	require.ErrorAs(t, err, &unasked)
	require.Equal(t, []string{"bank"}, unasked.Topics)
}

package life_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTailReportsEvents(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	began := make(chan struct{}, 1)
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
		switch timer.ID {
		case "fails":
			return errors.New("no\x1b[31m " + strings.Repeat("é", 1000))
		case "rejected":
			return wakebell.Reject(errors.New("never"))
		case "cancelled":
			began <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}, wakebell.RetryBackoff(time.Hour, time.Hour)))
	c := sys.Client()
	events := stacktest.Tail(t, c, topic.Name(), 1)
	next := func(kind wakebelltype.EventKind, id string) wakebelltype.Event {
		t.Helper()
		e := stacktest.Receive(t, events)
		require.Equal(t, kind, e.Kind, "%+v", e)
		require.Equal(t, id, e.ID)
		require.Equal(t, topic.Name(), e.Topic)
		require.Equal(t, 1, e.Attempt)
		require.WithinDuration(t, time.Now(), e.At, time.Minute)
		require.NotEmpty(t, e.Node)
		return e
	}
	schedule := func(id string) {
		t.Helper()
		_, err := topic.Schedule(t.Context(), c, "x", wakebell.ID(id))
		require.NoError(t, err)
		delivered := next(wakebelltype.EventDelivered, id)
		require.GreaterOrEqual(t, delivered.Lateness, time.Duration(0))
	}
	schedule("acked")
	require.Positive(t, next(wakebelltype.EventAcked, "acked").Took)
	schedule("fails")
	failed := next(wakebelltype.EventRetried, "fails")
	require.InDelta(t, time.Hour, failed.RetryIn, float64(13*time.Minute))
	require.True(t, strings.HasPrefix(failed.Text, "no"))
	require.LessOrEqual(t, len(failed.Text), 256)
	schedule("rejected")
	dead := next(wakebelltype.EventDead, "rejected")
	require.Equal(t, "never", dead.Text)
	last, err := c.LastDead(t.Context(), topic.Name(), 10)
	require.NoError(t, err)
	require.Equal(t, dead.Entry, last[0].Entry)
	require.Equal(t, dead.At, last[0].Died)
	schedule("cancelled")
	stacktest.Receive(t, began)
	_, err = topic.Cancel(t.Context(), c, "cancelled")
	require.NoError(t, err)
	next(wakebelltype.EventCancelled, "cancelled")
}

// A Tail receives the events of two processes and of a System in this process.
func TestTailReceivesEventsOfAllNodes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	nodes := []*process{startNode(t, server.Addr), startNode(t, server.Addr)}
	for _, node := range nodes {
		go func() { _, _ = io.Copy(io.Discard, node.out) }()
	}
	c := stacktest.Client(t, server.Client(t), connection.Config{})
	stacktest.Eventually(t, func() bool { // both have subscribed
		n, err := server.Client(t).PubSubNumSub(t.Context(), "timers_hint:numbers").Result()
		return err == nil && n["timers_hint:numbers"] == 2
	})
	events := stacktest.Tail(t, c, numbers.Name(), 2)
	drafts := make([]wakebell.Draft, 500)
	for i := range drafts {
		drafts[i] = numbers.Draft(1)
	}
	_, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	received := map[wakebelltype.EventKind]int{}
	byNode := map[string]int{}
	for received[wakebelltype.EventAcked]+received[wakebelltype.EventMissed] < len(drafts) {
		e := stacktest.Receive(t, events)
		received[e.Kind] += max(e.Missed, 1)
		byNode[e.Node]++
	}
	require.Zero(t, received[wakebelltype.EventMissed])
	// A slow machine releases timers that wait for a handler.
	require.Equal(t, len(drafts)+received[wakebelltype.EventReleased], received[wakebelltype.EventDelivered])
	require.NotEmpty(t, byNode)
	for _, node := range nodes {
		require.NoError(t, node.in.Close())
		require.NoError(t, node.cmd.Wait())
	}
}

// Tail returns an error to a user without rights on the event channel. A node of such
// a user continues and logs this once.
func TestTailWithoutChannelRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret",
		"resetchannels", "&timers_hint:*", "+@all", "~*").Err())
	plain := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" })
	for _, err := range stacktest.Client(t, plain, connection.Config{}).Tail(t.Context(), "t") {
		require.ErrorIs(t, err, wakebell.ErrChannelDenied)
		require.ErrorContains(t, err, "timers_events:t")
	}

	topic := wakebell.NewTopic[string]("t")
	handled := make(chan string, 10)
	stacktest.Serve(t, plain, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		handled <- timer.ID
		return nil
	}))
	all := stacktest.Client(t, server.Client(t), connection.Config{})
	events := stacktest.Tail(t, all, "t", 0)
	for _, id := range []string{"a", "b", "c"} {
		_, err := topic.Schedule(t.Context(), all, "x", wakebell.ID(id))
		require.NoError(t, err)
		require.Equal(t, id, stacktest.Receive(t, handled))
	}
	require.Empty(t, events)
}

func TestTailIsRefused(t *testing.T) {
	t.Parallel()
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{})
	var received []error
	for _, err := range c.Tail(t.Context(), "") {
		received = append(received, err)
	}
	require.Len(t, received, 1)
	require.ErrorIs(t, received[0], wakebell.ErrInvalid)
	_, err := c.LastDead(t.Context(), "", 1)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = c.LastDead(t.Context(), "t", 0)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// The end of the loop ends everything that Tail has started, and the sequence can be
// ranged over again.
func TestLoopOverTailMayEndEarly(t *testing.T) {
	t.Parallel()
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{})
	watch := c.Tail(t.Context(), redistest.Name(t))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for e, err := range watch {
				if err != nil || e.Kind != wakebelltype.EventAttached {
					t.Errorf("%+v %v", e, err)
				}
				break
			}
		})
	}
	both.Wait()
}

// A Tail that begins before a node receives the node's first events.
func TestTailReceivesFirstEventsOfNode(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	c := stacktest.Client(t, rdb, connection.Config{})
	_, err := topic.Schedule(t.Context(), c, "x", wakebell.ID("first"))
	require.NoError(t, err)
	events := stacktest.Tail(t, c, topic.Name(), 0)
	stacktest.Serve(t, rdb, wakebell.Handle(topic, stacktest.Nothing))
	for _, kind := range []wakebelltype.EventKind{wakebelltype.EventNode, wakebelltype.EventDelivered, wakebelltype.EventAcked} {
		require.Equal(t, kind, stacktest.Receive(t, events).Kind)
	}
}

package remote_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// subscribe runs a subscription until the end of the test, or the returned
// function.
func subscribe(t testing.TB, c *remote.Client, s remote.Subscription, handle func(context.Context, *messages.Lease) error) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Subscribe(ctx, s, handle) }()
	end = sync.OnceValue(func() error {
		cancel()
		return receive(t, done)
	})
	t.Cleanup(func() { _ = end() })
	return end
}

func TestSubscriberHandlesTimers(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	topic := n.topic.Name()
	var attempts sync.Map
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "s", Credits: 10}, func(_ context.Context, l *messages.Lease) error {
		attempts.Store(l.GetId(), int(l.GetAttempt()))
		switch {
		case l.GetId() == "reject":
			return wakebell.Reject(errors.New("never"))
		case l.GetId() == "retry" && l.GetAttempt() == 1:
			return wakebell.RetryIn(10 * time.Millisecond)
		}
		return nil
	})
	for _, id := range []string{"plain", "reject", "retry"} {
		_, err := n.topic.Schedule(t.Context(), c, "x", wakebell.ID(id))
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		st, err := c.Stats(t.Context(), topic)
		return err == nil && st.Total == 0 && st.Dead == 1
	})
	second, _ := attempts.Load("retry")
	require.Equal(t, 2, second)
}

func TestSubscriberHasNoMoreThanItsCredits(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, topic := dial(t, n), n.topic.Name()
	var slow, peak, quick atomic.Int32
	release := make(chan struct{})
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "slow", Credits: 3}, func(ctx context.Context, _ *messages.Lease) error {
		for now := slow.Add(1); ; {
			if old := peak.Load(); now <= old || peak.CompareAndSwap(old, now) {
				break
			}
		}
		defer slow.Add(-1)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	subscribe(t, dial(t, n), remote.Subscription{Topic: topic, Name: "quick", Credits: 5}, func(context.Context, *messages.Lease) error {
		quick.Add(1)
		return nil
	})
	drafts := make([]wakebell.Draft, 500)
	for i := range drafts {
		drafts[i] = n.topic.Draft("x")
	}
	_, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	eventually(t, func() bool { return slow.Load()+quick.Load() == 500 }, "the slow one does not delay the other")
	require.LessOrEqual(t, peak.Load(), int32(3))
	close(release)
	n.settled(t)
}

func TestNewSubscriptionReplacesFormer(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	topic := n.topic.Name()
	first, second := dial(t, n), dial(t, n)
	held := make(chan string, 1)
	release := make(chan struct{})
	subscribe(t, first, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(context.Context, *messages.Lease) error {
		held <- "first"
		<-release
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), first, "x", wakebell.ID("a"))
	require.NoError(t, err)
	require.Equal(t, "first", receive(t, held))

	// The same subscriber in another process gets what is due now. The first one goes on with its timer,
	// which the other one must not get before.
	subscribe(t, second, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(_ context.Context, l *messages.Lease) error {
		held <- "second " + l.GetId()
		return nil
	})
	for _, id := range []string{"b", "c"} {
		_, err = n.topic.Schedule(t.Context(), first, "x", wakebell.ID(id))
		require.NoError(t, err)
		require.Equal(t, "second "+id, receive(t, held))
	}
	close(release)
	n.settled(t)
	require.Empty(t, held)
}

func TestCancelledTimerEndsContextOfItsSubscriber(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(12 * time.Second)} // a handler that misses the hint notices the cancel within a third of the lease
	n := serve(t, cfg)
	c := dial(t, n)
	began, ended := make(chan struct{}), make(chan error, 1)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(ctx context.Context, _ *messages.Lease) error {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), c, "x", wakebell.ID("a"))
	require.NoError(t, err)
	receive(t, began)
	_, err = n.topic.Cancel(t.Context(), c, "a")
	require.NoError(t, err)
	require.ErrorIs(t, receive(t, ended), wakebell.ErrCancelled)
}

// TestSubscribersAreToldThatRunWasCancelledWhenItsIDIsScheduledAtOnce checks that none of
// the cancelled runs goes on beside the next run of its id, or settles it.
func TestSubscribersAreToldThatRunWasCancelledWhenItsIDIsScheduledAtOnce(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(6 * time.Second)}
	n := serve(t, cfg)
	c := dial(t, n)
	const runs = 20
	began, causes, second, ended := make(chan struct{}, runs), make(chan error, runs), make(chan struct{}, runs), make(chan struct{})
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s", Credits: 2 * runs}, func(ctx context.Context, lease *messages.Lease) error {
		if lease.GetHeaders()["again"] != "" {
			second <- struct{}{}
			<-ended
			return nil
		}
		began <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	})
	for i := range runs {
		_, err := n.topic.Schedule(t.Context(), c, "x", wakebell.ID(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	for range runs {
		receive(t, began)
	}
	for i := range runs {
		_, err := n.topic.Cancel(t.Context(), c, fmt.Sprint(i))
		require.NoError(t, err)
		_, err = n.topic.Schedule(t.Context(), c, "x", wakebell.ID(fmt.Sprint(i)), wakebell.Header("again", "yes"))
		require.NoError(t, err)
	}
	for range runs {
		require.ErrorIs(t, receive(t, causes), wakebell.ErrCancelled)
		receive(t, second)
	}
	stats, err := n.Client().Stats(t.Context(), n.topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, runs, stats.Total, "no cancelled run has settled the next one")
	close(ended)
	n.settled(t)
}

func TestLongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(7 * time.Second)}
	n := serve(t, cfg)
	c := dial(t, n)
	var deliveries atomic.Int32
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error {
		deliveries.Add(1)
		<-time.After(15 * time.Second) // more than two leases
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), c, "x")
	require.NoError(t, err)
	eventually(t, func() bool {
		st, err := c.Stats(t.Context(), n.topic.Name())
		return err == nil && st.Total == 0 && deliveries.Load() > 0
	})
	require.EqualValues(t, 1, deliveries.Load())
}

func TestTopicThatNodeHandlesCannotBeSubscribedTo(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	n := serve(t, withToken(), wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }))
	c := dial(t, n)
	err := c.Subscribe(t.Context(), remote.Subscription{Topic: topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error { return nil })
	require.ErrorIs(t, err, wakebell.ErrConflict)
	err = c.Subscribe(t.Context(), remote.Subscription{Topic: topic.Name()}, func(context.Context, *messages.Lease) error { return nil })
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

func TestSubscriberReconnectsAfterItsLinkBroke(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(3 * time.Second)}
	n := serve(t, cfg)
	link := through(t, n.server.Address())
	c := dialAt(t, link.Addr().String())
	var handled sync.Map
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s", Credits: 20}, func(_ context.Context, l *messages.Lease) error {
		handled.Store(l.GetId(), true)
		return nil
	})
	for i := range 300 {
		_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID(fmt.Sprint(i)))
		require.NoError(t, err)
		if i%60 == 59 {
			link.cut()
		}
	}
	n.settled(t)
	for i := range 300 {
		_, ok := handled.Load(fmt.Sprint(i))
		require.True(t, ok, i)
	}
}

// The lease of a crashed handler is not released when the link breaks: the crash
// counts as an attempt, and the timer is delivered again when its lease expires.
func TestCrashOfSubscriberIsNotUndoneByItsLink(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(2 * time.Second)}
	n := serve(t, cfg)
	link := through(t, n.server.Address())
	attempts := make(chan uint32, 10)
	subscribe(t, dialAt(t, link.Addr().String()), remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(_ context.Context, l *messages.Lease) error {
		attempts <- l.GetAttempt()
		if l.GetAttempt() == 1 {
			panic("as the test wants it")
		}
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	require.EqualValues(t, 1, receive(t, attempts))
	link.cut()
	require.EqualValues(t, 2, receive(t, attempts))
	n.settled(t)
}

// Subscribers log no error when their System stops before the Server.
func TestSubscribersLeaveSystemThatHasStopped(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	handled := make(chan struct{}, 1)
	end := subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error {
		handled <- struct{}{}
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), c, "x")
	require.NoError(t, err)
	receive(t, handled)
	n.settled(t)
	require.NoError(t, n.Stop())
	require.NoError(t, end())
	n.server.Stop()
	require.Empty(t, n.log.with("WARN"))
}

// A node listens before it starts: a subscriber tries again until it has.
func TestSubscribersWaitForStartOfNode(t *testing.T) {
	t.Parallel()
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{Logger: quiet}), wakebell.Config{DrainTimeout: -1})
	require.NoError(t, err)
	server, err := remote.Serve(sys, withToken())
	require.NoError(t, err)
	t.Cleanup(func() { _ = sys.Stop(); server.Stop() })
	n := &node{System: sys, server: server, address: server.Address(), topic: wakebell.NewTopic[string](redistest.Name(t))}
	_, err = n.topic.Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	handled := make(chan struct{}, 1)
	subscribe(t, dial(t, n), remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error {
		handled <- struct{}{}
		return nil
	})
	talk(t, n, secret).refused(messages.Code_CODE_DRAINING, subscription(n.topic.Name(), 10))
	require.NoError(t, sys.Start(t.Context()))
	receive(t, handled)
}

// The node's process may remove the topic; the next subscription adds it again.
func TestTopicThatWasRemovedIsAddedAgain(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, topic := dial(t, n), n.topic.Name()
	handled := make(chan string, 10)
	by := func(name string) func(context.Context, *messages.Lease) error {
		return func(_ context.Context, l *messages.Lease) error {
			handled <- name
			return nil
		}
	}
	end := subscribe(t, c, remote.Subscription{Topic: topic, Name: "first"}, by("first"))
	_, err := n.topic.Schedule(t.Context(), c, "x")
	require.NoError(t, err)
	require.Equal(t, "first", receive(t, handled))
	n.settled(t)
	require.NoError(t, n.Remove(topic))
	_, err = n.topic.Schedule(t.Context(), c, "x")
	require.NoError(t, err)
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "second", Credits: 7}, by("second"))
	receive(t, handled)
	require.NoError(t, end())
	require.Empty(t, n.log.with("WARN"))
}

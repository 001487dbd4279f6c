package remote_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
)

// spans are when handlers of one timer ran, by the clock of this process.
type spans struct {
	mu       sync.Mutex
	from, to map[string]time.Time // by subscriber
	late     time.Duration        // the most that a timer of this process was late
}

// watch measures how late timers are, until ctx ends: a handler whose context has ended does not
// run before, and on a busy machine others do.
func (s *spans) watch(ctx context.Context) {
	for ctx.Err() == nil {
		at := time.Now().Add(time.Millisecond)
		<-time.After(time.Millisecond)
		s.mu.Lock()
		s.late = max(s.late, time.Since(at))
		s.mu.Unlock()
	}
}

func (s *spans) handler(name string, began chan<- string) func(context.Context, *messages.Lease) error {
	return func(ctx context.Context, _ *messages.Lease) error {
		s.mu.Lock()
		if s.from[name].IsZero() {
			s.from[name] = time.Now()
		}
		s.mu.Unlock()
		began <- name
		<-ctx.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.to[name] = time.Now()
		return ctx.Err()
	}
}

// The link of a subscriber falls silent: neither closed nor answered. The context of
// its handler ends before another subscriber gets the timer or message. If timers of this
// process were late meanwhile by more than the handler, that says nothing, and is tried again.
func TestHandlerBehindSilentLinkEndsWithItsLease(t *testing.T) {
	t.Parallel()
	for _, isQueue := range []bool{false, true} {
		for {
			overlap, late := silence(t, isQueue)
			if overlap < 0 {
				break
			}
			require.Less(t, overlap, late, "the first ended after the second had begun, and timers were late by %v", late)
		}
	}
}

// silence silences the link of the first of two subscribers, and returns how long after the
// beginning of the second handler the first ended, and how late timers were.
func silence(t *testing.T, isQueue bool) (overlap, late time.Duration) {
	t.Helper()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(3 * time.Second)}
	cfg.QueueHandlerOptions = []wakebell.QueueHandlerOption{wakebell.LeaseTTL(3 * time.Second)}
	n := serve(t, cfg)
	link := faultproxy.StartRaw(t, n.server.Address())
	of := remote.Subscription{Topic: n.topic.Name()}
	if isQueue {
		of = remote.Subscription{Queue: queue.New[string](n.topic.Name()).Keys()}
	}
	ran := &spans{from: map[string]time.Time{}, to: map[string]time.Time{}}
	watching, enough := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { ran.watch(watching) })
	began := make(chan string, 16)
	first, second := of, of
	first.Name, second.Name = "first", "second"
	subscribe(t, dialAt(t, link.Addr), first, ran.handler("first", began))
	if isQueue {
		_, err := queue.New[string](n.topic.Name()).Publish(t.Context(), n.Client().Queues(), "x")
		require.NoError(t, err)
	} else {
		_, err := n.topic.Schedule(t.Context(), n.Client(), "x")
		require.NoError(t, err)
	}
	require.Equal(t, "first", receive(t, began))
	<-time.After(2 * time.Second) // so that its lease is extended
	link.Silence()
	endSecond := subscribe(t, dial(t, n), second, ran.handler("second", began))
	require.Equal(t, "second", receive(t, began))
	require.NoError(t, endSecond())
	eventually(t, func() bool {
		ran.mu.Lock()
		defer ran.mu.Unlock()
		return !ran.to["first"].IsZero()
	})
	enough()
	watch.Wait()
	link.Speak()
	ran.mu.Lock()
	defer ran.mu.Unlock()
	return ran.to["first"].Sub(ran.from["second"]), ran.late
}

// Leases that expired on a silent link reach no handler when the link works again.
func TestLeaseThatComesTooLateIsNotHandled(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(3 * time.Second)}
	n := serve(t, cfg)
	link := faultproxy.StartRaw(t, n.server.Address())
	var late atomic.Uint32           // the first attempt that reached the handler
	early := make(chan struct{}, 16) // its verdict may be lost
	subscribe(t, dialAt(t, link.Addr), remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(_ context.Context, l *messages.Lease) error {
		if l.GetId() == "late" {
			if attempt := late.Load(); attempt == 0 || l.GetAttempt() < attempt {
				late.Store(l.GetAttempt())
			}
			return nil
		}
		early <- struct{}{}
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	receive(t, early)
	link.Silence()
	_, err = n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID("late"))
	require.NoError(t, err)
	eventually(t, func() bool {
		info, _, err := n.Client().Get(t.Context(), n.topic.Name(), "late")
		return err == nil && info.Attempts > 0
	})
	<-time.After(4 * time.Second)
	link.Speak()
	n.settled(t)
	require.Greater(t, late.Load(), uint32(1), "the first lease had ended when it came")
}

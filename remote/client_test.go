package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

func dial(t testing.TB, n *node) *remote.Client {
	t.Helper()
	return dialAt(t, n.server.Address())
}

func dialAt(t testing.TB, address string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(t.Context(), address, remote.DialConfig{Config: remote.Config{Token: secret, Logger: quiet}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// The same calls on a Client here and on one over the network see the same.
func TestAClientElsewhereIsAsTheClientHere(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	topic := n.topic
	for name, c := range map[string]wakebell.Timers{"here": n.Client(), "elsewhere": dial(t, n)} {
		ctx := t.Context()
		at := time.Now().Add(time.Hour).Truncate(time.Second)
		id, err := topic.Schedule(ctx, c, "hello", wakebell.ID(name), wakebell.At(at), wakebell.Header("k", "v"))
		require.NoError(t, err)
		require.Equal(t, name, id)
		info, content, err := c.Get(ctx, topic.Name(), id)
		require.NoError(t, err)
		require.Equal(t, wakebell.StatePending, info.State)
		require.WithinDuration(t, at, info.Due, 0)
		require.Equal(t, "hello", string(content.Body))
		require.Equal(t, map[string]string{"k": "v"}, content.Headers.Map())

		again, err := c.Schedule(ctx, topic.Draft("x", wakebell.ID(id), wakebell.IfExists(wakebell.Keep)),
			topic.Draft("y", wakebell.ID(name+"2"), wakebell.In(2*time.Hour)))
		require.NoError(t, err)
		require.Equal(t, wakebell.KeptPending, again[0].Outcome)
		require.Equal(t, wakebell.Created, again[1].Outcome)

		moved, err := c.Reschedule(ctx, topic.Name(), id, wakebell.In(30*time.Minute))
		require.NoError(t, err)
		require.Equal(t, wakebell.Moved, moved.Outcome)
		var seen []string
		for info, err := range c.List(ctx, topic.Name(), wakebell.Filter{DueBefore: time.Now().Add(45 * time.Minute)}) {
			require.NoError(t, err)
			seen = append(seen, info.ID)
		}
		require.Equal(t, []string{name}, seen)
		st, err := c.Stats(ctx, topic.Name())
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Pending)

		found, err := topic.Cancel(ctx, c, id)
		require.NoError(t, err)
		require.Equal(t, wakebell.Pending, found)
		_, err = c.RunNow(ctx, topic.Name(), id)
		require.ErrorIs(t, err, wakebell.ErrNotFound)
		_, _, err = c.Get(ctx, topic.Name(), id)
		require.ErrorIs(t, err, wakebell.ErrNotFound)
		_, err = c.Schedule(ctx, topic.Draft("x", wakebell.ID("")))
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		_, err = c.Reschedule(ctx, topic.Name(), name+"2", wakebell.Debounce(time.Second, 0))
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		_, err = topic.Cancel(ctx, c, name+"2")
		require.NoError(t, err)
	}
}

func TestManyTimersTravelInSeveralRequests(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	drafts := make([]wakebell.Draft, 2500)
	for i := range drafts {
		drafts[i] = n.topic.Draft("x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
	}
	c := dial(t, n)
	stored, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	require.Len(t, stored, len(drafts))
	require.Equal(t, "2499", stored[2499].ID)
	count := 0
	for _, err := range c.List(t.Context(), n.topic.Name(), wakebell.Filter{}) {
		require.NoError(t, err)
		count++
	}
	require.Equal(t, len(drafts), count)
}

func TestACallWithAKeyThatIsMadeAgain(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	ctx := remote.WithKey(t.Context(), "order-42")
	draft := n.topic.Draft("x", wakebell.ID("a"), wakebell.In(time.Hour))
	_, err := c.Schedule(ctx, draft)
	require.NoError(t, err)
	_, err = n.topic.Cancel(t.Context(), c, "a")
	require.NoError(t, err)
	again, err := c.Schedule(ctx, draft)
	require.NoError(t, err)
	require.Equal(t, wakebell.Created, again[0].Outcome, "the answer of the first")
	_, _, err = c.Get(t.Context(), n.topic.Name(), "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	for _, token := range []string{"", "a-wrong-one-of-sixteen-bytes"} {
		_, err := remote.Dial(t.Context(), n.server.Address(), remote.DialConfig{Config: remote.Config{Token: token, Logger: quiet}})
		require.ErrorIs(t, err, remote.ErrDenied)
	}
	_, err := remote.Dial(t.Context(), "nowhere", remote.DialConfig{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	began := time.Now()
	_, err = remote.Dial(t.Context(), deadAddress(t), remote.DialConfig{DeadLink: 500 * time.Millisecond})
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
	require.Less(t, time.Since(began), patience)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = remote.Dial(ctx, deadAddress(t), remote.DialConfig{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// proxy passes connections on until it is cut.
type proxy struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	dead  atomic.Bool
}

func through(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l, to: to}
	go p.serve()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	return p
}

func (p *proxy) serve() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil || p.dead.Load() {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		pass := func(from, to net.Conn) {
			b := make([]byte, 32<<10)
			for {
				n, err := from.Read(b)
				if _, e := to.Write(b[:n]); err != nil || e != nil {
					_, _ = from.Close(), to.Close()
					return
				}
			}
		}
		go pass(in, out)
		go pass(out, in)
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func TestCallsSurviveALinkThatIsCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	link := through(t, n.server.Address())
	c := dialAt(t, link.Addr().String())
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for range 10 {
			select {
			case <-stop:
				return
			case <-time.After(150 * time.Millisecond):
				link.cut()
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 200 {
		_, err := n.topic.Schedule(ctx, c, "x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
		require.NoError(t, err)
	}
	close(stop)
	cutting.Wait()
	st, err := n.Client().Stats(ctx, n.topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, 200, st.Pending)

	link.dead.Store(true)
	link.cut()
	began := time.Now()
	_, err = n.topic.Schedule(ctx, c, "x")
	require.ErrorIs(t, err, wakebell.ErrUnavailable, "a dead link is told")
	require.Less(t, time.Since(began), patience)
	link.dead.Store(false)
	eventually(t, func() bool {
		_, err := n.topic.Schedule(ctx, c, "x", wakebell.In(time.Hour))
		return err == nil
	}, "and it comes back by itself")
}

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

func TestASubscriberHandlesTimers(t *testing.T) {
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

func TestASubscriberHasNoMoreThanItsCredits(t *testing.T) {
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
	eventually(t, func() bool { return slow.Load()+quick.Load() == 500 }, "the slow one holds up no other")
	require.LessOrEqual(t, peak.Load(), int32(3))
	close(release)
	eventually(t, func() bool { st, err := c.Stats(t.Context(), topic); return err == nil && st.Total == 0 })
}

func TestSubscribingAgainTakesOver(t *testing.T) {
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

	// The same subscriber elsewhere does not know what the first still does: it
	// gives it back, and has it itself.
	subscribe(t, second, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(context.Context, *messages.Lease) error {
		held <- "second"
		return nil
	})
	require.Equal(t, "second", receive(t, held))
	close(release)
	eventually(t, func() bool { st, err := second.Stats(t.Context(), topic); return err == nil && st.Total == 0 })
}

func TestWhatASubscriberLeavesIsGivenBackAtOnce(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.Handler = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
	n := serve(t, cfg)
	topic := n.topic.Name()
	c := dial(t, n)
	began := make(chan struct{}, 1)
	end := subscribe(t, c, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(ctx context.Context, _ *messages.Lease) error {
		began <- struct{}{}
		<-t.Context().Done() // it ignores its context
		return nil
	})
	_, err := n.topic.Schedule(t.Context(), c, "x", wakebell.ID("a"))
	require.NoError(t, err)
	receive(t, began)
	require.NoError(t, end())
	eventually(t, func() bool {
		info, _, err := c.Get(t.Context(), topic, "a")
		return err == nil && info.State != wakebell.StateRunning && info.Attempts == 0
	})
}

func TestACancelledTimerEndsTheContextOfItsSubscriber(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.Handler = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
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

func TestALongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.Handler = []wakebell.HandlerOption{wakebell.LeaseTTL(3 * time.Second)}
	n := serve(t, cfg)
	c := dial(t, n)
	var deliveries atomic.Int32
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error {
		deliveries.Add(1)
		<-time.After(7 * time.Second) // more than two leases
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

func TestATopicThatTheNodeHandlesCannotBeSubscribedTo(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	n := serve(t, withToken(), wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }))
	c := dial(t, n)
	err := c.Subscribe(t.Context(), remote.Subscription{Topic: topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error { return nil })
	require.ErrorIs(t, err, wakebell.ErrConflict)
	err = c.Subscribe(t.Context(), remote.Subscription{Topic: topic.Name()}, func(context.Context, *messages.Lease) error { return nil })
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

func TestASubscriberComesBackAfterItsLinkBroke(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.Handler = []wakebell.HandlerOption{wakebell.LeaseTTL(3 * time.Second)}
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
	eventually(t, func() bool {
		st, err := n.Client().Stats(t.Context(), n.topic.Name())
		return err == nil && st.Total == 0
	})
	for i := range 300 {
		_, ok := handled.Load(fmt.Sprint(i))
		require.True(t, ok, i)
	}
}

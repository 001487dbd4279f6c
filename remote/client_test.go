package remote_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

func dial(t testing.TB, n *node) *remote.Client {
	t.Helper()
	return dialAt(t, n.server.Address())
}

func dialAt(t testing.TB, address string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(t.Context(), address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config:   remote.Config{Token: secret},
		DeadLink: time.Minute, // so that a stall does not end the link
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// The same calls on a local Client and over the network have the same results.
func TestRemoteClientEqualsLocalClient(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	topic := n.topic
	for name, c := range map[string]wakebell.TimerClient{"here": n.Client(), "elsewhere": dial(t, n)} {
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
		typed, err := topic.Get(ctx, c, id)
		require.NoError(t, err)
		require.Equal(t, wakebell.Stored[string]{Info: info, Body: "hello", Content: content}, typed)
		unreadable, err := wakebell.NewTopic[int](topic.Name()).Get(ctx, c, id)
		require.ErrorIs(t, err, wakebell.ErrUnreadable)
		require.Equal(t, wakebell.Stored[int]{Info: info, Content: content}, unreadable)

		again, err := c.Schedule(ctx, topic.Draft("x", wakebell.ID(id), wakebell.IfExists(wakebelltype.PolicyKeep)),
			topic.Draft("y", wakebell.ID(name+"2"), wakebell.In(2*time.Hour)))
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeKeptPending, again[0].Outcome)
		require.Equal(t, wakebelltype.OutcomeCreated, again[1].Outcome)

		moved, err := c.Reschedule(ctx, topic.Name(), id, wakebell.In(30*time.Minute))
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeMoved, moved.Outcome)
		var seen []string
		for info, err := range c.List(ctx, topic.Name(), wakebell.Filter{DueBefore: time.Now().Add(45 * time.Minute)}, wakebelltype.Page{}) {
			require.NoError(t, err)
			seen = append(seen, info.ID)
		}
		require.Equal(t, []string{name}, seen)
		st, err := c.Stats(ctx, topic.Name())
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Pending)

		found, err := topic.Cancel(ctx, c, id)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.PresencePending, found)
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
	for _, err := range c.List(t.Context(), n.topic.Name(), wakebell.Filter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		count++
	}
	require.Equal(t, len(drafts), count)
}

func TestRepeatedCallWithKeyHasFirstAnswer(t *testing.T) {
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
	require.Equal(t, wakebelltype.OutcomeCreated, again[0].Outcome, "the answer of the first")
	_, _, err = c.Get(t.Context(), n.topic.Name(), "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}

func TestErrorsOfDial(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	for _, token := range []string{"", "a-wrong-one-of-sixteen-bytes"} {
		_, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
			Config:   remote.Config{Token: token},
			DeadLink: time.Minute,
		})
		require.ErrorIs(t, err, remote.ErrDenied)
	}
	_, err := remote.Dial(t.Context(), "nowhere", nil, remote.DialConfig{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	began := time.Now()
	_, err = remote.Dial(t.Context(), deadAddress(t), nil, remote.DialConfig{DeadLink: 500 * time.Millisecond})
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
	require.Less(t, time.Since(began), patience)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = remote.Dial(ctx, deadAddress(t), nil, remote.DialConfig{DeadLink: time.Minute})
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

func TestCallsSurviveLinkThatIsCutAgainAndAgain(t *testing.T) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

	impatient, err := remote.Dial(ctx, link.Addr().String(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{Config: remote.Config{Token: secret}})
	require.NoError(t, err)
	t.Cleanup(impatient.Close)
	link.dead.Store(true)
	link.cut()
	began := time.Now()
	_, err = n.topic.Schedule(ctx, impatient, "x")
	require.ErrorIs(t, err, wakebell.ErrUnavailable, "a call over a dead link fails")
	require.Less(t, time.Since(began), patience)
	link.dead.Store(false)
	eventually(t, func() bool {
		_, err := n.topic.Schedule(ctx, impatient, "x", wakebell.In(time.Hour))
		return err == nil
	}, "the client must reconnect automatically")
}

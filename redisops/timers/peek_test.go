package timers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestPeek(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		look := func() time.Duration {
			answer, err := f.src.Peek(t.Context())
			require.NoError(t, err)
			return answer.Next
		}
		require.Negative(t, look(), "nothing is scheduled")
		require.Negative(t, look(), "still nothing, now read with EXISTS")

		f.schedule(t, Entry{ID: "hour", In: time.Hour})
		require.InDelta(t, time.Hour, look(), float64(time.Minute))
		reply := f.Claim(t, 1)
		answer, err := f.src.Peek(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, reply.Now.Add(reply.Next), answer.Now.Add(answer.Next), 2*time.Microsecond,
			"the same instant as an exchange reports")

		f.schedule(t, Entry{ID: "now"})
		require.Zero(t, look())
		f.Claim(t, 1)
		require.Positive(t, look(), "a leased timer is not due")
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Timeline).Err())
		require.Negative(t, look())
		require.NoError(t, f.rdb.Set(t.Context(), f.key.Timeline, "not a timeline", 0).Err())
		require.Zero(t, look(), "the exchange reports the error")
	})
}

// TestPeeksAreBatched checks that topics that are idle at the same time cost one
// command in all.
func TestPeeksAreBatched(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, err := New(server.Client(t), wakebelltype.Keys{})
	require.NoError(t, err)
	const topics = 200
	sources := make([]*TimerSource, topics)
	for i := range sources {
		sources[i] = s.Source(fmt.Sprint(i), SourceOptions{})
	}
	all := func() (answers [topics]exchange.PeekReply) {
		var wait sync.WaitGroup
		for i, source := range sources {
			wait.Go(func() {
				var err error
				answers[i], err = source.Peek(context.WithoutCancel(t.Context()))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return answers
	}
	all()
	meter := server.Client(t)
	before := commands(t, meter, "exists", "evalsha")
	for _, answer := range all() {
		require.Negative(t, answer.Next)
	}
	require.LessOrEqual(t, commands(t, meter, "exists", "evalsha")-before, topics/4)

	_, err = s.Schedule(t.Context(), "7", Entry{ID: "x", In: time.Hour})
	require.NoError(t, err)
	for i, answer := range all() {
		require.Equal(t, i == 7, answer.Next >= 0, i)
	}
}

// TestPeekEndsWithItsContext checks that a peek whose context has ended delays
// neither its caller nor the other peeks.
func TestPeekEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, err := New(server.Client(t), wakebelltype.Keys{})
	require.NoError(t, err)
	source := s.Source("x", SourceOptions{})
	server.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := source.Peek(ctx)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	server.Resume()
	require.Eventually(t, func() bool {
		answer, err := source.Peek(t.Context())
		return err == nil && answer.Next < 0
	}, 30*time.Second, 10*time.Millisecond)
}

// commands returns how many times Redis has run the named commands.
func commands(t *testing.T, rdb *redis.Client, names ...string) (total int) {
	t.Helper()
	info, err := rdb.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, name := range names {
		stats := info["Commandstats"]["cmdstat_"+name]
		if stats == "" {
			continue
		}
		var calls int
		_, err := fmt.Sscanf(stats, "calls=%d,", &calls)
		require.NoError(t, err)
		total += calls
	}
	return total
}

// TestPeeksDoNotWaitForEachOther checks that a connection that hangs delays only
// the peeks that were sent on it.
func TestPeeksDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	first := &hang{reached: make(chan struct{}), release: make(chan struct{})}
	rdb.AddHook(first)
	stuck := make(chan error, 1)
	go func() {
		_, err := s.Source("stuck", SourceOptions{}).Peek(t.Context())
		stuck <- err
	}()
	<-first.reached
	_, err = s.Source("other", SourceOptions{}).Peek(t.Context())
	require.NoError(t, err)
	close(first.release)
	require.NoError(t, <-stuck)
}

// hang is a hook that delays the first command until it is released.
type hang struct {
	came             atomic.Bool
	reached, release chan struct{}
}

func (h *hang) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hang) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hang) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.came.CompareAndSwap(false, true) {
			close(h.reached)
			<-h.release
		}
		return next(ctx, cmd)
	}
}

// testWatch is a watch of a test, which decides when to peek again.
type testWatch struct {
	answers chan exchange.PeekReply
	again   chan time.Time // when to peek again; zero: no more
	stop    func() (next time.Time)
}

func watchedBy(t *testing.T, source *TimerSource) *testWatch {
	w := &testWatch{answers: make(chan exchange.PeekReply), again: make(chan time.Time)}
	w.stop = source.Watch(t.Context(), func(_ time.Time, answer exchange.PeekReply, err error) (time.Time, bool) {
		if err != nil {
			t.Error(err)
		}
		w.answers <- answer
		at := <-w.again
		return at, !at.IsZero()
	})
	return w
}

// TestWatchPeeksUntilItEnds checks that a topic is peeked at when the caller says so, and no
// more when the caller or the watch has ended that.
func TestWatchPeeksUntilItEnds(t *testing.T) {
	t.Parallel()
	s, err := New(redistest.Start(t).Client(t), wakebelltype.Keys{})
	require.NoError(t, err)
	waiting := func() int {
		s.peeker.mu.Lock()
		defer s.peeker.mu.Unlock()
		return len(s.peeker.waiting)
	}
	one := watchedBy(t, s.Source("one", SourceOptions{}))
	require.Negative(t, (<-one.answers).Next, "it peeks at once")
	_, err = s.Schedule(t.Context(), "one", Entry{ID: "a", In: time.Hour})
	require.NoError(t, err)
	one.again <- time.Now()
	require.Negative(t, (<-one.answers).Next-2*time.Hour)
	one.again <- time.Time{}

	other := watchedBy(t, s.Source("other", SourceOptions{}))
	<-other.answers
	require.Zero(t, other.stop(), "a peek is in flight")
	other.again <- time.Now() // too late
	require.Zero(t, waiting())

	third := watchedBy(t, s.Source("third", SourceOptions{}))
	<-third.answers
	at := time.Now().Add(time.Hour)
	third.again <- at
	require.Eventually(t, func() bool { return waiting() == 1 }, 30*time.Second, time.Millisecond)
	require.WithinRange(t, third.stop(), at, at.Add(time.Hour/64), "when it would have peeked")
	require.Zero(t, waiting())
}

// TestWatchesPeekInStep checks that peeks share instants, and are late by a 64th at most.
func TestWatchesPeekInStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		began := time.Now()
		l := &peeker{begun: began}
		instants := map[time.Duration]bool{}
		for range 1000 {
			now := began.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "now")))
			at := now.Add(time.Duration(rapid.Int64Range(int64(5*time.Second), int64(6*time.Second)).Draw(t, "wait")))
			stepped := l.inStep(now, at)
			if stepped.Before(at) || stepped.Sub(at) > at.Sub(now)/64 {
				t.Fatalf("a peek in %v is late by %v", at.Sub(now), stepped.Sub(at))
			}
			instants[stepped.Sub(began)%(1<<26)] = true
		}
		if len(instants) > 1 {
			t.Fatalf("%d places in a step", len(instants))
		}
	})
}

package actors

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/scheduler"
)

// fakeSchedule is a Schedule that records its turns.
type fakeSchedule struct {
	mu    sync.Mutex
	made  int
	turns []time.Time
	hints int
	turn  func(n int) (time.Duration, error) // of the n-th turn, from 1
	hint  func()                             // the callback of Listen
}

func (r *fakeSchedule) Hint() { r.mu.Lock(); r.hints++; r.mu.Unlock() }

func (r *fakeSchedule) Turn(ctx context.Context) (time.Duration, error) {
	r.mu.Lock()
	r.turns = append(r.turns, time.Now())
	n := len(r.turns)
	r.mu.Unlock()
	return r.turn(n)
}

func (r *fakeSchedule) count() (made, turns, hints int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made, len(r.turns), r.hints
}

func (r *fakeSchedule) start(t *testing.T) *Runtime {
	t.Helper()
	rt, err := Start(actortest.QuietSystem(), Config{Name: "a", Logger: actortest.DiscardLogger, Beats: []scheduler.Config{{
		Schedule: func() scheduler.Schedule { r.mu.Lock(); r.made++; r.mu.Unlock(); return r },
		Listen: func(ctx context.Context, deliver func()) error {
			r.mu.Lock()
			r.hint = deliver
			r.mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		},
	}}})
	require.NoError(t, err)
	return rt
}

func TestBeatTurnsAtTheInstantItReturned(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		r := &fakeSchedule{turn: func(int) (time.Duration, error) { return 10 * time.Second, nil }}
		rt := r.start(t)
		<-time.After(25 * time.Second)
		_, turns, _ := r.count()
		require.Equal(t, 3, turns)
		r.hint()
		<-time.After(time.Millisecond)
		_, turns, hints := r.count()
		require.Equal(t, 4, turns, "a hint does not wait")
		require.Equal(t, 1, hints)
		require.NoError(t, rt.Stop())
		<-time.After(time.Minute)
		_, after, _ := r.count()
		require.Equal(t, turns, after)
	})
}

func TestBeatContinuesAfterErrorsAndPanics(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		r := &fakeSchedule{turn: func(n int) (time.Duration, error) {
			switch {
			case n < 20:
				return 0, errors.New("broken")
			case n == 20:
				panic("a bug")
			}
			return time.Hour, nil
		}}
		rt := r.start(t)
		<-time.After(time.Minute)
		_, early, _ := r.count()
		require.Less(t, early, 20, "errors are retried with backoff")
		<-time.After(2 * time.Minute)
		made, turns, _ := r.count()
		require.Equal(t, 22, turns)
		require.Equal(t, 21, made, "a new Schedule is made after each failure")
		require.NoError(t, rt.Stop())
	})
}

func TestBeatEndsWithDrain(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		r := &fakeSchedule{turn: func(int) (time.Duration, error) { return time.Second, nil }}
		rt := r.start(t)
		<-time.After(1500 * time.Millisecond)
		_, err := rt.Drain(time.Minute)
		require.NoError(t, err)
		<-time.After(10 * time.Second)
		_, turns, _ := r.count()
		require.Equal(t, 2, turns)
		require.NoError(t, rt.Stop())
	})
}

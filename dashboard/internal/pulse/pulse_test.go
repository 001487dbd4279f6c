package pulse_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/pulse"
)

// Nothing waits longer than a check, and nothing waits once an outage is known.
func TestOutageIsKnownAfterOneCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		checks := 0
		p := pulse.New(func(ctx context.Context) bool {
			checks++
			if hangs.Load() {
				<-ctx.Done()
			}
			return !hangs.Load()
		})
		start := time.Now()
		require.Equal(t, pulse.State{Since: start}, p.State(t.Context(), time.Second))
		require.Equal(t, pulse.State{Since: start}, p.State(t.Context(), time.Second))
		require.Equal(t, 1, checks, "a recent check is used")
		<-time.After(time.Second)
		hangs.Store(true)
		down := pulse.State{Down: true, Since: start}
		require.Equal(t, down, p.State(t.Context(), time.Second))
		require.Equal(t, time.Second+pulse.Limit, time.Since(start))
		<-time.After(time.Second)
		before := time.Now()
		require.Equal(t, down, p.State(t.Context(), time.Second))
		require.Equal(t, before, time.Now(), "it does not wait")
		hangs.Store(false)
		<-time.After(2 * time.Second)
		p.State(t.Context(), time.Second) // starts a check that is answered
		synctest.Wait()
		require.False(t, p.State(t.Context(), time.Second).Down)
		hangs.Store(true)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, p.State(gone, 0).Down, "a caller that has gone does not wait")
		<-time.After(pulse.Limit)
	})
}

func TestWithoutAnyAnswerOutageBeginsWithFirstCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pulse.New(func(context.Context) bool { return false })
		start := time.Now()
		require.Equal(t, pulse.State{Down: true, Since: start}, p.State(t.Context(), 0))
		<-time.After(time.Minute)
		require.Equal(t, pulse.State{Down: true, Since: start}, p.State(t.Context(), 0))
		synctest.Wait()
	})
}

package actors

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// deaths puts deaths of these ids in a hook's queue.
func deaths(h *hook, counters *counters, payload string, ids ...string) {
	for _, id := range ids {
		h.add(death{Death{"t", exchange.Burial{ID: id, Payload: []byte(payload)}}, counters})
	}
}

func numbers(n int) (ids []string) {
	for i := range n {
		ids = append(ids, strconv.Itoa(i))
	}
	return ids
}

func TestHookSurvivesItsUser(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		var told []string
		var log bytes.Buffer
		h := newHook(func(_ context.Context, d Death) {
			told = append(told, d.ID)
			switch d.ID {
			case "panics":
				panic("as the test wants it")
			case "exits":
				runtime.Goexit()
			}
		}, slog.New(slog.NewTextHandler(&log, nil)))
		var c counters
		deaths(h, &c, "", "panics", "a", "exits", "b", "exits")
		synctest.Wait()
		require.Equal(t, []string{"panics", "a", "exits", "b", "exits"}, told)
		require.Equal(t, 3, strings.Count(log.String(), "hook of dead letters panicked"))
		require.Contains(t, log.String(), "as the test wants it")
		require.Equal(t, Counters{Told: 2, HookPanics: 3}, c.snapshot())
		deaths(h, &c, "", "later")
		synctest.Wait()
		require.Equal(t, "later", told[len(told)-1])
		h.end(time.Now(), ErrStopped)
	})
}

// A hook that cannot keep up is not called for all. The log says so once, and
// once more when it has caught up.
func TestHookQueueIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, payload string
		room          int // how many wait
	}{
		{"by number", "", maxDeaths},
		{"by bytes", strings.Repeat("x", maxDeathBytes/4-1), 4},
		{"but for one", strings.Repeat("x", maxDeathBytes+1), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T) {
				var log bytes.Buffer
				release := make(chan struct{})
				h := newHook(func(context.Context, Death) { <-release }, slog.New(slog.NewTextHandler(&log, nil)))
				for spell := range 2 {
					var counts counters
					deaths(h, &counts, "", "first")
					synctest.Wait() // it is with the hook
					deaths(h, &counts, c.payload, numbers(c.room)...)
					require.Zero(t, counts.snapshot().Untold)
					deaths(h, &counts, c.payload, "9", "9", "9")
					require.Equal(t, Counters{Untold: 3}, counts.snapshot())
					require.Equal(t, spell+1, strings.Count(log.String(), "it is too slow"))
					for range c.room + 1 {
						release <- struct{}{}
					}
					synctest.Wait()
					require.Equal(t, Counters{Untold: 3, Told: int64(c.room) + 1}, counts.snapshot())
					require.Equal(t, spell+1, strings.Count(log.String(), "not_called_for=3"))
				}
				h.end(time.Now(), ErrStopped)
			})
		})
	}
}

func TestHookThatIgnoresItsContextIsLeft(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		var log bytes.Buffer
		release := make(chan struct{})
		var cause error
		h := newHook(func(ctx context.Context, _ Death) {
			<-release
			cause = context.Cause(ctx)
		}, slog.New(slog.NewTextHandler(&log, nil)))
		var c counters
		deaths(h, &c, "", "a", "b")
		began := time.Now()
		h.end(began.Add(time.Second), ErrDraining)
		require.Equal(t, time.Second+hookGrace, time.Since(began))
		require.Contains(t, log.String(), "left behind")
		deaths(h, &c, "", "late")
		require.EqualValues(t, 2, c.snapshot().Untold)
		close(release)
		synctest.Wait()
		require.Equal(t, ErrDraining, cause)
		require.EqualValues(t, 1, c.snapshot().Told)
	})
}

func TestStopEndsTheHook(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		ended := make(chan error, 1)
		rt, err := Start(quietSystem(), Config{
			Name: "a", Logger: quiet,
			Topics: []Topic{topicOn(newShelf(2), 1, func(context.Context, *Delivery) Outcome { return Rejected(ErrStopped) })},
			OnDead: func(ctx context.Context, _ Death) {
				<-ctx.Done()
				ended <- context.Cause(ctx)
			},
		})
		require.NoError(t, err)
		<-time.After(time.Second)
		began := time.Now()
		require.NoError(t, rt.Stop())
		require.Zero(t, time.Since(began))
		require.Equal(t, ErrStopped, <-ended)
		require.EqualValues(t, 1, rt.Counters()["shelf"].Untold)
	})
}

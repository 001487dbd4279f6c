package observe

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

var errEnded = errors.New("the runtime ends")

// deaths adds dead letters with these ids to the queue of a hook.
func deaths(h *DeadHook, counts *Counters, payload string, ids ...string) {
	for _, id := range ids {
		h.Add(DeadTimer{"t", exchange.DeadLettered{ID: id, Payload: []byte(payload)}}, counts)
	}
}

func TestHookSurvivesPanicsAndExits(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var called []string
		var log bytes.Buffer
		h := NewDeadHook(func(_ context.Context, d DeadTimer) {
			called = append(called, d.ID)
			switch d.ID {
			case "panics":
				panic("as the test wants it")
			case "exits":
				runtime.Goexit()
			}
		}, slog.New(slog.NewTextHandler(&log, nil)))
		var c Counters
		deaths(h, &c, "", "panics", "a", "exits", "b", "exits")
		synctest.Wait()
		require.Equal(t, []string{"panics", "a", "exits", "b", "exits"}, called)
		require.Equal(t, 3, strings.Count(log.String(), "dead-letter hook panicked"))
		require.Contains(t, log.String(), "as the test wants it")
		require.Equal(t, wakebelltype.Counters{HookCalls: 2, HookPanics: 3}, c.Snapshot())
		deaths(h, &c, "", "later")
		synctest.Wait()
		require.Equal(t, "later", called[len(called)-1])
		h.End(time.Now(), errEnded)
	})
}

// TestHookQueueIsBounded checks that a slow hook is not called for the dead letters
// that exceed its queue, and that this is logged once, and once more when the hook
// has caught up.
func TestHookQueueIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, payload string
		room          int // dead letters in a full queue
	}{
		{"by number", "", maxQueuedCalls},
		{"by bytes", strings.Repeat("x", maxQueuedBytes/4-1), 4},
		{"one above the bound", strings.Repeat("x", maxQueuedBytes+1), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				var log bytes.Buffer
				release := make(chan struct{})
				h := NewDeadHook(func(context.Context, DeadTimer) { <-release }, slog.New(slog.NewTextHandler(&log, nil)))
				for spell := range 2 {
					var counts Counters
					deaths(h, &counts, "", "first")
					synctest.Wait() // the hook has taken it from the queue
					deaths(h, &counts, c.payload, actortest.Numbers(c.room)...)
					require.Zero(t, counts.Snapshot().HookSkipped)
					deaths(h, &counts, c.payload, "9", "9", "9")
					require.Equal(t, wakebelltype.Counters{HookSkipped: 3}, counts.Snapshot())
					require.Equal(t, spell+1, strings.Count(log.String(), "too slow"))
					for range c.room + 1 {
						release <- struct{}{}
					}
					synctest.Wait()
					require.Equal(t, wakebelltype.Counters{HookSkipped: 3, HookCalls: int64(c.room) + 1}, counts.Snapshot())
					require.Equal(t, spell+1, strings.Count(log.String(), "skipped=3"))
				}
				h.End(time.Now(), errEnded)
			})
		})
	}
}

func TestHookThatIgnoresItsContextIsLeft(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var log bytes.Buffer
		release := make(chan struct{})
		var cause error
		h := NewDeadHook(func(ctx context.Context, _ DeadTimer) {
			<-release
			cause = context.Cause(ctx)
		}, slog.New(slog.NewTextHandler(&log, nil)))
		var c Counters
		deaths(h, &c, "", "a", "b")
		began := time.Now()
		h.End(began.Add(time.Second), errEnded)
		require.Equal(t, time.Second+DeadHookGrace, time.Since(began))
		require.Contains(t, log.String(), "is abandoned")
		deaths(h, &c, "", "late")
		require.EqualValues(t, 2, c.Snapshot().HookSkipped)
		close(release)
		synctest.Wait()
		require.Equal(t, errEnded, cause)
		require.EqualValues(t, 1, c.Snapshot().HookCalls)
	})
}

package life_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTailReportsWhatEndedJoin has a join of which all parts end, and one whose time-out comes
// first, for a handler and for one of batches. A retry does not begin it again.
func TestTailReportsWhatEndedJoin(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(wakebell.Topic[string], ...wakebell.HandlerOption) wakebell.Handler{
		"alone": func(topic wakebell.Topic[string], options ...wakebell.HandlerOption) wakebell.Handler {
			return wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error { return failOnce(timer) }, options...)
		},
		"in batches": func(topic wakebell.Topic[string], options ...wakebell.HandlerOption) wakebell.Handler {
			return wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
				return failOnce(timers[0])
			}, options...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := redistest.Name(t)
			parts, waits := wakebell.NewTopic[string](base+"-parts"), wakebell.NewTopic[string](base)
			sys := stacktest.Serve(t, redistest.Shared(t), handle(waits, wakebell.RetryBackoff(time.Millisecond, time.Millisecond)),
				wakebell.Handle(parts, func(context.Context, wakebell.Timer[string]) error { return nil }))
			events := stacktest.Tail(t, sys.Client(), waits.Name(), 1)
			run := func(id, want string, timeout time.Duration, drafts ...wakebell.Draft) {
				t.Helper()
				_, err := sys.Client().Schedule(t.Context(), wakebell.Batch(drafts...).Then(waits.Draft("", wakebell.ID(id), wakebell.In(timeout)))...)
				require.NoError(t, err)
				var kinds []wakebelltype.EventKind
				for {
					e := stacktest.Receive(t, events)
					require.Equal(t, id, e.ID)
					kinds = append(kinds, e.Kind)
					if e.Kind == wakebelltype.EventJoined {
						require.Equal(t, want, e.Text)
						require.Equal(t, 1, e.Attempt)
						require.WithinDuration(t, time.Now(), e.At, time.Minute)
					}
					if e.Kind == wakebelltype.EventAcked {
						break
					}
				}
				require.Equal(t, []wakebelltype.EventKind{
					wakebelltype.EventDelivered, wakebelltype.EventJoined, wakebelltype.EventRetried, wakebelltype.EventDelivered, wakebelltype.EventAcked,
				}, kinds)
			}
			run("all", "all 2 parts of its join have ended", time.Hour, parts.Draft("", wakebell.ID("a")), parts.Draft("", wakebell.ID("b")))
			run("late", "the time-out of its join came first: 1 of 1 parts have not ended", 50*time.Millisecond,
				parts.Draft("", wakebell.ID("c"), wakebell.In(time.Hour)))
			_, err := waits.Schedule(t.Context(), sys.Client(), "", wakebell.ID("plain"))
			require.NoError(t, err)
			require.Equal(t, wakebelltype.EventDelivered, stacktest.Receive(t, events).Kind)
			require.Equal(t, wakebelltype.EventRetried, stacktest.Receive(t, events).Kind, "it has no join")
		})
	}
}

// failOnce fails the first attempt of a timer.
func failOnce(timer wakebell.Timer[string]) error {
	if timer.Attempt == 1 {
		return wakebell.RetryIn(time.Millisecond)
	}
	return nil
}

package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestCustomerWithBacklogDoesNotHoldUpAnother has a customer with many due timers, and sees how
// long the timer of another waits: with turns, and after a retune that switches them off.
func TestCustomerWithBacklogDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("reports")
	handle := func(ctx context.Context, _ wakebell.Timer[string]) error {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.PerKey(100), wakebell.MaxConcurrent(2), wakebell.FairKeys(1),
			wakebell.KeyWeights(map[string]int{"gold": 3})),
	}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		load := func(key string, n int) {
			drafts := make([]wakebell.Draft, n)
			for i := range drafts {
				drafts[i] = topic.Draft(key, wakebell.Key(key), wakebell.ID(fmt.Sprint(key, "/", i)))
			}
			_, err := w.Client().Schedule(t.Context(), drafts...)
			require.NoError(t, err)
		}
		// handled returns how many timers of a customer are delivered within a span.
		handled := func(key string, span time.Duration) (n int) {
			before := len(w.Delivered("reports"))
			w.Advance(span)
			for _, d := range w.Delivered("reports")[before:] {
				if strings.HasPrefix(d.ID, key+"/") {
					n++
				}
			}
			return n
		}
		load("big", 500)
		w.Advance(10 * time.Second)
		load("small", 1)
		require.Equal(t, 1, handled("small", 3*time.Second), "it waits for one turn, and for a free handler")
		load("gold:1", 500)
		require.InDelta(t, 45, handled("gold:1", 30*time.Second), 4, "three of four")

		_, err := w.Client().Retune(t.Context(), "reports", wakebelltype.Settings{FairKeys: -1})
		require.NoError(t, err)
		w.Advance(10 * time.Second)
		load("late", 1)
		require.Zero(t, handled("late", 30*time.Second), "those before it come first")
		overview, err := w.Client().Overview(t.Context(), "reports")
		require.NoError(t, err)
		require.Equal(t, -1, overview[0].Control.Settings.FairKeys)
	})
}

func TestKeyWeightsAreChecked(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("reports")
	handle := func(context.Context, wakebell.Timer[string]) error { return nil }
	for _, option := range []wakebell.HandlerOption{
		wakebell.FairKeys(101), wakebell.FairKeys(-1), wakebell.KeyWeights(map[string]int{"gold": 0}), wakebell.KeyWeights(map[string]int{"gold": 101}),
		wakebell.KeyWeights(map[string]int{"": 1}), wakebell.KeyWeights(map[string]int{"a b": 1}), wakebell.KeyWeights(map[string]int{"a=b": 1}),
	} {
		_, err := wakebell.New(nil, nil, wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, option)}})
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	}
}

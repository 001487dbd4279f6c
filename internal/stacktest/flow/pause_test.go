package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A pause with an end ends at that instant on every node and in every shard, and no command
// is needed.
func TestPauseEndsAtItsInstant(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 3} {
		topic := wakebell.NewTopic[int]("calls")
		handle := func(context.Context, wakebell.Timer[int]) error { return nil }
		cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.Shards(shards))}}
		wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
			paused, err := w.Client().PauseUntil(t.Context(), "calls", wakebelltype.Pause{By: "ann", For: 2 * time.Hour})
			require.NoError(t, err)
			drafts := make([]wakebell.Draft, 30)
			for i := range drafts {
				drafts[i] = topic.Draft(i)
			}
			_, err = w.Client().Schedule(t.Context(), drafts...)
			require.NoError(t, err)
			w.Advance(time.Until(paused.PausedUntil) - time.Millisecond)
			require.Empty(t, w.Delivered("calls"))
			w.Advance(100 * time.Millisecond)
			require.Len(t, w.Delivered("calls"), len(drafts))
			control, err := w.Client().Control(t.Context(), "calls")
			require.NoError(t, err)
			require.Zero(t, control)
		})
	}
}

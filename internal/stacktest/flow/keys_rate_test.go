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

// TestRateLimitByKeyIsReachedAfterPause sees a key with a backlog reach its rate before
// and after a pause, during which its tokens return, and a raised rate.
func TestRateLimitByKeyIsReachedAfterPause(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[int]("calls")
	handle := func(context.Context, wakebell.Timer[int]) error { return nil }
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.RateLimitByKey(10, time.Second, 10), wakebell.MaxConcurrent(20)),
	}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		drafts := make([]wakebell.Draft, 1000)
		for i := range drafts {
			drafts[i] = topic.Draft(i, wakebell.Key("k"))
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		startedWithin := func(d time.Duration) int {
			before := len(w.Delivered("calls"))
			w.Advance(d)
			return len(w.Delivered("calls")) - before
		}
		require.InDelta(t, 100+10, startedWithin(10*time.Second), 15)
		for range 3 {
			_, err := w.Client().Pause(t.Context(), "calls", "ann", "the other side is down")
			require.NoError(t, err)
			w.Advance(30 * time.Second)
			_, err = w.Client().Resume(t.Context(), "calls")
			require.NoError(t, err)
			require.InDelta(t, 100+10, startedWithin(10*time.Second), 10, "its rate, and the burst that has returned")
		}
		_, err = w.Client().Retune(t.Context(), "calls", wakebelltype.Settings{KeyRateLimit: 50, KeyRatePer: time.Second, KeyRateBurst: 10})
		require.NoError(t, err)
		require.GreaterOrEqual(t, startedWithin(10*time.Second), 450)
	})
}

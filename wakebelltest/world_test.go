package wakebelltest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
)

var notes = wakebell.NewTopic[string]("notes")

// acks is a node that handles everything well.
func handling(fn func(context.Context, wakebell.Timer[string]) error, opts ...wakebell.HandlerOption) wakebell.Config {
	return wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(notes, fn, opts...)}}
}

func acks(context.Context, wakebell.Timer[string]) error { return nil }

func TestAdvanceRunsWhatIsDue(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(acks), func(t *testing.T, w *wakebelltest.World) {
		began := time.Now()
		_, err := notes.Schedule(t.Context(), w.Client(), "x", wakebell.ID("a"), wakebell.In(72*time.Hour))
		require.NoError(t, err)
		w.Advance(72*time.Hour - time.Microsecond)
		require.Empty(t, w.Delivered("notes"))
		w.Advance(time.Microsecond)
		d := w.RequireDelivered("notes", "a")
		require.Equal(t, wakebelltest.Acked, d.Outcome)
		require.Equal(t, 1, d.Attempt)
		t.Log(time.Since(began), d)
		require.Empty(t, w.Upcoming("notes"))
	})
}

func TestYears(t *testing.T) {
	wakebelltest.Run(t, handling(func(context.Context, wakebell.Timer[string]) error {
		return errors.New("no")
	}), func(t *testing.T, w *wakebelltest.World) {
		began := time.Now()
		_, err := notes.Schedule(t.Context(), w.Client(), "x", wakebell.ID("a"), wakebell.In(72*time.Hour))
		require.NoError(t, err)
		w.Advance(365 * 24 * time.Hour)
		for _, d := range w.Delivered("notes") {
			t.Log(d)
		}
		t.Log(time.Since(began))
	})
}

package life_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// TestSystemMakesItsOwnActorSystem delivers a timer without an ActorSystem of the caller. The
// lines of protoactor-go about its start are shown at debug level only.
func TestSystemMakesItsOwnActorSystem(t *testing.T) {
	t.Parallel()
	for level, lines := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			conn := conntest.New(t, redistest.Shared(t), connection.Config{
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})),
			})
			topic, done := wakebell.NewTopic[string](redistest.Name(t)), make(chan string, 1)
			sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
				wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
					done <- timer.Body
					return nil
				}),
			}})
			require.NoError(t, err)
			require.NotNil(t, sys.ActorSystem())
			require.NoError(t, sys.Start(t.Context()))
			_, err = topic.Schedule(t.Context(), sys.Client(), "own")
			require.NoError(t, err)
			require.Equal(t, "own", stacktest.Receive(t, done))
			require.NoError(t, sys.Stop())
			require.Equal(t, lines, bytes.Contains(log.Bytes(), []byte("actor system")), log.String())
		})
	}
}

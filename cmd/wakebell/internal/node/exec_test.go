package node

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A timer of the guard may run, and a command may fail, while the node stops.
func TestGuardOfCommandsThatHasStoppedDoesNothing(t *testing.T) {
	t.Parallel()
	g := &execGuard{log: slog.New(slog.DiscardHandler), paused: map[string]*time.Timer{}}
	g.stop()
	g.unable("orders", errors.New("not found"))
	g.resume("orders")
	require.Empty(t, g.paused)
}

package poller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

func TestNobodyCanWatchWithoutEvents(t *testing.T) {
	t.Parallel()
	actortest.Virtually(t, func(t *testing.T) {
		var nothing Tail
		var f feed
		nothing.Watch(&f, time.Minute, 0)
		require.False(t, f.Watched.Load())
	})
}

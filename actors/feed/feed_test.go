package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

func TestNobodyCanWatchWithoutEvents(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var nothing Publisher
		var f Feed
		nothing.Watch(&f, time.Minute, 0)
		require.False(t, f.Watched.Load())
	})
}

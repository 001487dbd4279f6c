package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

func TestWatchWithoutAPublisherIsIgnored(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var none Publisher
		var f Feed
		none.Watch(&f, time.Minute, 0)
		require.False(t, f.Watched.Load())
	})
}

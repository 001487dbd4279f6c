package live_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/live"
)

func TestProbeThatPanicsIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		h := live.New(time.Second, 10, 10)
		changed, stop, ok := h.Watch(t.Context(), "alice", "k", func(context.Context) (string, error) {
			if calls++; calls == 2 {
				panic("broken")
			}
			return strconv.Itoa(calls), nil
		})
		require.True(t, ok)
		<-changed
		require.Equal(t, 3, calls)
		stop()
	})
}

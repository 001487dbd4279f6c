package fan_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/fan"
)

func TestEachIsCalledOnce(t *testing.T) {
	t.Parallel()
	calls := make([]atomic.Int64, 100)
	n, err := fan.Out(t.Context(), len(calls), func(i int) { calls[i].Add(1) })
	require.NoError(t, err)
	require.Equal(t, len(calls), n)
	for i := range calls {
		require.Equal(t, int64(1), calls[i].Load())
	}
}

func TestEndedContextStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	n, err := fan.Out(ctx, 1000, func(int) { cancel() })
	require.NoError(t, err)
	require.Less(t, n, 20)
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	n, err := fan.Out(t.Context(), 3, func(i int) {
		if i == 1 {
			panic("one")
		}
	})
	require.ErrorContains(t, err, "one")
	require.Equal(t, 3, n)
}

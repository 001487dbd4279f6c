package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 7, quantile([]int64{7}, 0.99), 0)
	require.InDelta(t, 2, quantile([]int64{1, 2}, 0.5), 0)
	require.InDelta(t, 100, quantile([]int64{1, 100}, 0.99), 0)
}

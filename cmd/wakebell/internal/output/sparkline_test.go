package output

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSparkline(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]int64{
		"":         nil,
		"▁▁▁":      {0, 0, 0},
		"▁▂▃▄▅▆▇█": {0, 1, 2, 3, 4, 5, 6, 7},
		"█":        {3},
	} {
		require.Equal(t, want, Sparkline(values, 8))
	}
	require.Equal(t, "▃█", Sparkline([]int64{1, 1, 2, 2, 2}, 2), "sums of three, the last bar is whole")
	require.Empty(t, Sparkline([]int64{1}, 0))
}

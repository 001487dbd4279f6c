package convert_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/convert"
)

func TestTimestamps(t *testing.T) {
	t.Parallel()
	require.Nil(t, convert.Timestamp(time.Time{}))
	require.True(t, convert.Time(nil).IsZero())
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	require.Equal(t, at, convert.Time(convert.Timestamp(at)))
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]uint32{-1: 0, 0: 0, 7: 7, math.MaxInt: 1 << 31} {
		require.Equal(t, want, convert.Count(n))
	}
}

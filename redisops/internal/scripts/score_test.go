package scripts

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzReadScore checks that formatting a score that was read gives the same score
// again.
func FuzzReadScore(f *testing.F) {
	for _, text := range []string{"1795246719.123", "inf", "-inf", "nan", "1e400", "-0", "0x1p-2", "1_0", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		score, err := ReadScore(text)
		if err != nil {
			return
		}
		require.False(t, math.IsNaN(score))
		at := Instant(score)
		require.False(t, at.Before(FirstInstant) || at.After(LastInstant))
		again, err := ReadScore(ScoreText(at))
		require.NoError(t, err)
		require.WithinDuration(t, at, Instant(again), time.Microsecond)
	})
}

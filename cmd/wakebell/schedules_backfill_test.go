package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

func TestABackfillThatFailsSaysHowManyRunsItFired(t *testing.T) {
	t.Parallel()
	require.Equal(t, wakebell.ErrNoSchedule, unfinishedBackfill(0, wakebell.ErrNoSchedule))
	err := unfinishedBackfill(100, wakebell.ErrUnavailable)
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
	require.ErrorContains(t, err, "after 100 runs were fired: ")
}

package schedules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
)

func TestFailedBackfillReportsFiredRuns(t *testing.T) {
	t.Parallel()
	require.Equal(t, recurring.ErrNotFound, unfinishedBackfill(0, recurring.ErrNotFound))
	err := unfinishedBackfill(100, wakebell.ErrUnavailable)
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
	require.ErrorContains(t, err, "after 100 runs were fired: ")
}

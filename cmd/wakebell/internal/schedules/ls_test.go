package schedules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/recurring"
)

// The clock of the process that lists does not count.
func TestListedScheduleIsOverdueByClockOfRedis(t *testing.T) {
	t.Parallel()
	line := newRecurringLine("", recurring.State{Name: "late", Next: time.Now().Add(time.Hour), Overdue: 90 * time.Second})
	require.Equal(t, "due for 1m30s, and no beat has fired it", line.Unattended)
	line = newRecurringLine("", recurring.State{Name: "early", Next: time.Now().Add(-time.Hour)})
	require.Empty(t, line.Unattended)
}

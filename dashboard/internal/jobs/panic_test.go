package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/jobs"
)

func TestJobThatPanicsFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var js jobs.Jobs
		j, err := js.Start(t.Context(), "purge", "alice", 1, func(context.Context, *jobs.Job) (string, error) { panic("broken") })
		require.NoError(t, err)
		synctest.Wait()
		require.False(t, j.Status().Running())
		require.EqualError(t, j.Status().Err, "panic in the job: broken")
		_, err = js.Start(t.Context(), "purge", "alice", 1, func(context.Context, *jobs.Job) (string, error) { return "done", nil })
		require.NoError(t, err)
	})
}

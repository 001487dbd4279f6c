package recurring_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// On a Cluster, schedules under the default prefix are divided. One node fires all of
// them, and operators see them as one list.
func TestSchedulesOfCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Client(t)
	topic := wakebell.NewTopic[string]("reports")
	fired := make(chan string, 1000)
	var schedules []recurring.Schedule
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("report-%02d", i))
		schedules = append(schedules, topic.Recurring(names[i], recurring.Rule{Every: time.Second}, names[i]))
	}
	sys, err := wakebell.New(actorSystem(), conntest.New(t, rdb, connection.Config{Logger: quiet}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			fired <- timer.Body
			return nil
		})},
		Scheduler: &recurring.SchedulerConfig{Owner: "test", Schedules: schedules, TakeLock: true},
	})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, sys.Stop()) })
	late := time.After(time.Minute)
	for seen := map[string]bool{}; len(seen) < len(names); {
		select {
		case name := <-fired:
			seen[name] = true
		case <-late:
			require.FailNow(t, "not all fired", "%v", slices.Sorted(maps.Keys(seen)))
		}
	}

	c, ctx := sys.Client().Schedules(), t.Context()
	var listed []string
	for s, err := range c.List(ctx, wakebelltype.Page{After: names[4], Limit: 10}) {
		require.NoError(t, err)
		listed = append(listed, s.Name)
	}
	require.Equal(t, names[5:15], listed)
	require.NoError(t, c.Pause(ctx, names[0]))
	state, err := c.Get(ctx, names[0])
	require.NoError(t, err)
	require.True(t, state.Paused)
	require.NoError(t, c.Delete(ctx, names[1]))
	require.ErrorIs(t, c.Delete(ctx, names[1]), recurring.ErrNotFound)
	require.NoError(t, c.Put(ctx, topic.Recurring("yearly", recurring.Rule{Every: 365 * 24 * time.Hour}, "yearly")))
	run, err := c.RunNow(ctx, "yearly")
	require.NoError(t, err)
	require.EqualValues(t, 1, run.Number)
	for name := ""; name != "yearly"; {
		select {
		case name = <-fired:
		case <-late:
			require.FailNow(t, "the run was not delivered")
		}
	}
	deleted, err := c.Reconcile(ctx, "test", schedules[:2]...)
	require.NoError(t, err)
	require.ElementsMatch(t, names[2:], deleted)
}

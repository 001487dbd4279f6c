package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The same calls on local recurring schedules and over the network have the same
// results.
func TestRemoteSchedulesEqualLocalSchedules(t *testing.T) {
	t.Parallel()
	n := serve(t, remote.Config{Tokens: map[string]string{secret: "tests"}, CeleryQueues: []string{"celery"}})
	ctx, name := t.Context(), redistest.Name(t)
	start := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	here, elsewhere := n.Client().Schedules(), dial(t, n).Schedules()
	put := map[string]recurring.Schedule{
		"every": n.topic.Recurring(name+"every", recurring.Rule{Every: time.Minute, Relative: true, Jitter: time.Second, MaxRuns: 3}, "x"),
		"cron": n.topic.Recurring(name+"cron", recurring.Rule{
			Cron: "0 9 * * 1-5", Zone: "Europe/Berlin", SkipGaps: true, Start: start, Until: start.Add(999 * time.Hour),
			Misfire: recurring.MisfireAll, MisfireLimit: 7, Overlap: recurring.OverlapQueue, Headers: map[string]string{"k": "v"},
		}, "x"),
		"crontab": n.topic.Recurring(name+"crontab", recurring.Rule{Crontab: &recurring.Crontab{Minute: "*/5", DayOfWeek: "1"}}, "x"),
		"rrule":   n.topic.Recurring(name+"rrule", recurring.Rule{RRule: "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9", Start: start}, "x"),
		"celery":  recurring.Celery(name+"celery", "tasks.add", recurring.Rule{Every: time.Hour, Start: start}, []any{1, 2}, map[string]any{"a": "b"}, nil),
	}
	for kind, r := range put {
		t.Run(kind, func(t *testing.T) {
			require.NoError(t, elsewhere.Put(ctx, r))
			there, err := elsewhere.Get(ctx, name+kind)
			require.NoError(t, err)
			state, err := here.Get(ctx, name+kind)
			require.NoError(t, err)
			require.Equal(t, state, there)
			for _, s := range []recurring.Operator{here, elsewhere} {
				require.NoError(t, s.Pause(ctx, name+kind))
				state, err = s.Get(ctx, name+kind)
				require.NoError(t, err)
				require.True(t, state.Paused)
				require.NoError(t, s.Resume(ctx, name+kind))
			}
			wanted, err := here.Preview(ctx, name+kind, 2)
			require.NoError(t, err)
			got, err := elsewhere.Preview(ctx, name+kind, 2)
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.WithinDuration(t, wanted[0], got[0], time.Minute)
			require.NoError(t, here.Put(ctx, r), "the same again changes nothing")
			again, err := elsewhere.Get(ctx, name+kind)
			require.NoError(t, err)
			require.Equal(t, state.RuleText, again.RuleText)
		})
	}
	run, err := elsewhere.RunNow(ctx, name+"every")
	require.NoError(t, err)
	require.EqualValues(t, 1, run.Number)
	st, err := n.Client().Stats(ctx, n.topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Total)
	seen := 0
	for state, err := range elsewhere.List(ctx, wakebelltype.Page{}) {
		require.NoError(t, err)
		if _, ours := put[state.Name[min(len(name), len(state.Name)):]]; ours {
			seen++
		}
	}
	require.Equal(t, len(put), seen)
	for kind := range put {
		require.NoError(t, elsewhere.Delete(ctx, name+kind))
	}
}

func TestSchedulesAreExportedAndImportedOverNetwork(t *testing.T) {
	t.Parallel()
	n := serve(t, remote.Config{Tokens: map[string]string{secret: "tests"}, CeleryQueues: []string{"celery"}})
	ctx, name := t.Context(), redistest.Name(t)
	here, elsewhere := n.Client().Schedules(), dial(t, n).Schedules()
	from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	require.NoError(t, here.Put(ctx,
		n.topic.Recurring(name+"hourly", recurring.Rule{Cron: "0 * * * *", Zone: "Europe/Berlin"}, "x"),
		recurring.Celery(name+"celery", "tasks.add", recurring.Rule{Every: time.Hour}, []any{1}, nil, nil)))
	for _, name := range []string{name + "hourly", name + "celery"} {
		want, err := here.Export(ctx, name)
		require.NoError(t, err)
		got, err := elsewhere.Export(ctx, name)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, here.Delete(ctx, name))
		require.NoError(t, elsewhere.Import(ctx, got))
		again, err := here.Export(ctx, name)
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, s := range []recurring.Operator{here, elsewhere} {
		fired, err := s.Backfill(ctx, name+"hourly", from, from.AddDate(0, 0, 1))
		require.NoError(t, err)
		require.Equal(t, 24, fired)
		_, err = s.Backfill(ctx, name+"hourly", from, from.AddDate(10, 0, 0))
		require.ErrorIs(t, err, wakebell.ErrInvalid, "too many")
		_, err = s.Backfill(ctx, name+"hourly", from, from)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		_, err = s.Backfill(ctx, name, from, from.AddDate(0, 0, 1))
		require.ErrorIs(t, err, recurring.ErrNotFound)
		_, err = s.Export(ctx, name)
		require.ErrorIs(t, err, recurring.ErrNotFound)
		require.ErrorIs(t, s.Import(ctx, recurring.Dump{Name: name, Definition: []byte("\xff")}), wakebell.ErrInvalid)
	}
	st, err := n.Client().Stats(ctx, n.topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, 24, st.Total, "runs of the same instants have the same ids")
	for _, s := range []string{"hourly", "celery"} {
		require.NoError(t, elsewhere.Delete(ctx, name+s))
	}
}

func TestInvalidRequestsForSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	ctx, name := t.Context(), redistest.Name(t)
	for _, s := range []recurring.Operator{n.Client().Schedules(), dial(t, n).Schedules()} {
		_, err := s.Get(ctx, name)
		require.ErrorIs(t, err, recurring.ErrNotFound)
		require.ErrorIs(t, s.Delete(ctx, name), recurring.ErrNotFound)
		require.ErrorIs(t, s.Pause(ctx, name), recurring.ErrNotFound)
		_, err = s.RunNow(ctx, name)
		require.ErrorIs(t, err, recurring.ErrNotFound)
		_, err = s.Preview(ctx, name, -1)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorIs(t, s.Put(ctx, n.topic.Recurring(name, recurring.Rule{}, "x")), wakebell.ErrInvalid)
		require.ErrorIs(t, s.Put(ctx, n.topic.Recurring(name, recurring.Rule{Cron: "nonsense"}, "x")), wakebell.ErrInvalid)
	}
}

func TestRemoteQueueEqualsLocalQueue(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, ctx := dial(t, n), t.Context()
	orders := queue.New[string](redistest.Name(t), queue.DeduplicateBy(func(s string) string { return s }),
		queue.PendingCap(3, queue.FullFails))
	for where, p := range map[string]queue.Publisher{"here": n.Client().Queues(), "elsewhere": c.Queues()} {
		fresh, err := orders.Publish(ctx, p, where)
		require.NoError(t, err)
		require.True(t, fresh)
		fresh, err = orders.Publish(ctx, p, where)
		require.NoError(t, err)
		require.False(t, fresh)
	}
	draft := orders.Draft("third")
	for range 2 {
		published, err := c.Queues().Publish(ctx, draft)
		require.NoError(t, err)
		require.True(t, published[0].Fresh, "the same draft again is a retry")
	}
	_, err := orders.Publish(ctx, c.Queues(), "fourth")
	require.ErrorIs(t, err, queue.ErrFull)
	waiting := queue.New[string](orders.Name(), queue.PendingCap(3, queue.FullWaits))
	short, cancel := context.WithTimeout(ctx, 5*time.Second) // the first answer arrives in time
	defer cancel()
	_, err = waiting.Publish(short, c.Queues(), "fifth")
	require.ErrorIs(t, err, queue.ErrFull)
	purged, err := n.Client().Queues().Purge(ctx, orders.Keys(), false)
	require.NoError(t, err)
	require.EqualValues(t, 3, purged)
	many := queue.New[string](redistest.Name(t)) // the node may publish the fifth now, whose caller has given up
	bodies := make([]string, 1200)
	published, err := many.PublishAll(ctx, c.Queues(), bodies...)
	require.NoError(t, err)
	require.Len(t, published, len(bodies))
	st, err := n.Client().Queues().Stats(ctx, many.Keys())
	require.NoError(t, err)
	require.EqualValues(t, len(bodies), st.Pending)
	_, err = queue.New[string]("").Publish(ctx, c.Queues(), "x")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

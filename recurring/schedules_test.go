package recurring_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

var reports = wakebell.NewTopic[string]("reports")

// withBeat is a configuration of a node that fires schedules and handles reports.
func withBeat(b recurring.SchedulerConfig) wakebell.Config {
	return wakebell.Config{Scheduler: &b, Handlers: []wakebell.Handler{
		wakebell.Handle(reports, func(context.Context, wakebell.Timer[string]) error { return nil }),
	}}
}

func TestRecurringScheduleIsDelivered(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, withBeat(recurring.SchedulerConfig{}), func(t *testing.T, w *wakebelltest.World) {
		began := time.Now().UTC()
		s := w.Client().Schedules()
		require.NoError(t, s.Put(t.Context(), reports.Recurring("daily", recurring.Rule{Cron: "0 9 * * *", Zone: "Europe/Berlin"}, "sales")))
		preview, err := s.Preview(t.Context(), "daily", 2)
		require.NoError(t, err)
		require.Equal(t, []time.Time{began.Add(8 * time.Hour), began.Add(32 * time.Hour)}, preview)
		w.Advance(8*time.Hour - time.Millisecond)
		require.Empty(t, w.Delivered("reports"))
		w.Advance(40 * time.Hour)
		all := w.Delivered("reports")
		require.Len(t, all, 2)
		require.Equal(t, "daily@2000-01-01T08:00:00Z", all[0].ID)
		require.WithinDuration(t, began.Add(8*time.Hour), all[0].At, 5*time.Millisecond)
		state, err := s.Get(t.Context(), "daily")
		require.NoError(t, err)
		require.Equal(t, int64(2), state.Runs)
		require.Equal(t, began.Add(56*time.Hour), state.Next)
	})
}

// The headers of a run have the name of its schedule, its instant and its number.
func TestHeadersOfRun(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []wakebell.Timer[string]
	cfg := wakebell.Config{Scheduler: &recurring.SchedulerConfig{}, Handlers: []wakebell.Handler{
		wakebell.Handle(reports, func(_ context.Context, timer wakebell.Timer[string]) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, timer)
			return nil
		}),
	}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		when := recurring.Rule{Every: time.Hour, MaxRuns: 2, Headers: map[string]string{"tenant": "a"}}
		require.NoError(t, w.Client().Schedules().Put(t.Context(), reports.Recurring("hourly", when, "sales")))
		w.Advance(5 * time.Hour)
	})
	require.Len(t, got, 2)
	require.Equal(t, map[string]string{
		"tenant": "a", "wakebell-schedule": "hourly", "wakebell-due": got[1].Activation.Format("2006-01-02T15:04:05.999999Z07:00"), "wakebell-run": "2",
	}, got[1].Headers.Map())
	require.Equal(t, "sales", got[1].Body)
}

func TestPauseResumeAndRunNow(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, withBeat(recurring.SchedulerConfig{}), func(t *testing.T, w *wakebelltest.World) {
		s := w.Client().Schedules()
		require.NoError(t, s.Put(t.Context(), reports.Recurring("r", recurring.Rule{Every: time.Hour}, "x")))
		w.Advance(90 * time.Minute)
		require.NoError(t, s.Pause(t.Context(), "r"))
		require.NoError(t, s.Pause(t.Context(), "r"))
		w.Advance(10 * time.Hour)
		require.Len(t, w.Delivered("reports"), 1)
		run, err := s.RunNow(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, int64(2), run.Number)
		w.Advance(0)
		require.Len(t, w.Delivered("reports"), 2)
		// Put of an existing schedule leaves it paused.
		require.NoError(t, s.Put(t.Context(), reports.Recurring("r", recurring.Rule{Every: time.Hour}, "y")))
		state, err := s.Get(t.Context(), "r")
		require.NoError(t, err)
		require.True(t, state.Paused)
		require.Zero(t, state.Next)
		require.NoError(t, s.Resume(t.Context(), "r"))
		w.Advance(time.Second)
		require.Len(t, w.Delivered("reports"), 2, "instants during a pause are not misfires")
		w.Advance(30 * time.Minute)
		require.Len(t, w.Delivered("reports"), 3, "the instants do not change")
		for _, call := range []func(context.Context, string) error{s.Pause, s.Resume, s.Delete} {
			err := call(t.Context(), "missing")
			require.ErrorIs(t, err, recurring.ErrNotFound)
			require.ErrorIs(t, err, wakebell.ErrNotFound)
		}
	})
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, withBeat(recurring.SchedulerConfig{}), func(t *testing.T, w *wakebelltest.World) {
		s, from := w.Client().Schedules(), time.Now().Add(-24*time.Hour)
		require.NoError(t, s.Put(t.Context(), reports.Recurring("r", recurring.Rule{Cron: "0 * * * *", MaxRuns: 5}, "x")))
		instants, err := s.Instants(t.Context(), "r", from, time.Now())
		require.NoError(t, err)
		require.Len(t, instants, 24)
		n, err := s.Backfill(t.Context(), "r", from, time.Now())
		require.NoError(t, err)
		require.Equal(t, 24, n)
		w.Advance(0)
		require.Len(t, w.Delivered("reports"), 24)
		w.Advance(24 * time.Hour)
		require.Len(t, w.Delivered("reports"), 29, "backfilled runs do not count for MaxRuns")
		_, err = s.Backfill(t.Context(), "r", from, from.Add(10*365*24*time.Hour))
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		_, err = s.Instants(t.Context(), "r", from, from)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	})
}

// A start stores the schedules of its configuration and deletes those of an earlier
// configuration. It keeps the schedules of other owners.
func TestStaticSchedules(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		s := w.Client().Schedules()
		static := func(name string) recurring.Schedule {
			return reports.Recurring(name, recurring.Rule{Every: time.Hour}, "x")
		}
		names := func() map[string]int64 {
			all := map[string]int64{}
			for state, err := range s.List(t.Context(), wakebelltype.Page{}) {
				require.NoError(t, err)
				all[state.Name] = state.Runs
			}
			return all
		}
		require.NoError(t, s.Put(t.Context(), static("mine")))
		node := w.Start(withBeat(recurring.SchedulerConfig{Owner: "svc", Schedules: []recurring.Schedule{static("a"), static("b")}}))
		w.Advance(90 * time.Minute)
		require.Equal(t, map[string]int64{"mine": 1, "a": 1, "b": 1}, names())
		require.NoError(t, node.Stop())
		w.Start(withBeat(recurring.SchedulerConfig{Owner: "svc", Schedules: []recurring.Schedule{static("a")}}))
		require.Equal(t, map[string]int64{"mine": 1, "a": 1}, names())
		w.Advance(31 * time.Minute)
		require.Equal(t, map[string]int64{"mine": 2, "a": 2}, names(), "a start does not delay existing schedules")
		w.Start(withBeat(recurring.SchedulerConfig{}))
		require.Len(t, names(), 2, "nil changes no schedules")
	})
}

func TestInvalidSchedules(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		s := w.Client().Schedules()
		hourly := recurring.Rule{Every: time.Hour}
		for name, r := range map[string]recurring.Schedule{
			"no rule":       reports.Recurring("r", recurring.Rule{}, "x"),
			"two rules":     reports.Recurring("r", recurring.Rule{Every: 1, Cron: "* * * * *"}, "x"),
			"no name":       reports.Recurring("", hourly, "x"),
			"a key's name":  reports.Recurring(":schedule", hourly, "x"),
			"no topic":      wakebell.NewTopic[string]("").Recurring("r", hourly, "x"),
			"bad cron":      reports.Recurring("r", recurring.Rule{Cron: "61 * * * *"}, "x"),
			"bad zone":      reports.Recurring("r", recurring.Rule{Cron: "* * * * *", Zone: "Berlin"}, "x"),
			"bad crontab":   reports.Recurring("r", recurring.Rule{Crontab: &recurring.Crontab{Minute: "x"}}, "x"),
			"bad rrule":     reports.Recurring("r", recurring.Rule{RRule: "FREQ=NEVER"}, "x"),
			"bad jitter":    reports.Recurring("r", recurring.Rule{Every: 1, Jitter: -1}, "x"),
			"bad until":     reports.Recurring("r", recurring.Rule{Every: 1, Start: time.Now(), Until: time.Now().Add(-1)}, "x"),
			"bad misfire":   reports.Recurring("r", recurring.Rule{Every: 1, Misfire: "never"}, "x"),
			"bad overlap":   reports.Recurring("r", recurring.Rule{Every: 1, Overlap: "never"}, "x"),
			"bad max":       reports.Recurring("r", recurring.Rule{Every: 1, MaxRuns: -1}, "x"),
			"bad header":    reports.Recurring("r", recurring.Rule{Every: 1, Headers: map[string]string{"": "x"}}, "x"),
			"bad args":      recurring.Celery("r", "t", hourly, []any{func() {}}, nil, nil),
			"bad queue":     recurring.Celery("r", "t", hourly, nil, nil, map[string]any{"queue": 5}),
			"other pickles": recurring.Celery("r", "t", hourly, nil, nil, map[string]any{"serializer": "pickle"}),
			"no overlap":    recurring.Celery("r", "t", recurring.Rule{Every: 1, Overlap: recurring.OverlapSkip}, nil, nil, nil),
		} {
			require.ErrorIs(t, s.Put(t.Context(), r), wakebell.ErrInvalid, name)
		}
		for state, err := range s.List(t.Context(), wakebelltype.Page{}) {
			require.NoError(t, err)
			require.Empty(t, state.Name, "nothing was stored")
		}
		_, err := wakebell.New(actorSystem(), conntest.New(t, w.Redis(), connection.Config{}), wakebell.Config{Scheduler: &recurring.SchedulerConfig{
			MaxInterval: -1, Schedules: []recurring.Schedule{reports.Recurring("r", hourly, ""), reports.Recurring("r", hourly, "")},
		}})
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "given twice")
		require.ErrorContains(t, err, "Owner: 0 bytes")
	})
}

// List yields an entry that cannot be read with an error.
func TestBrokenSchedulesAreListed(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	prefix := redistest.Name(t)
	s := open(t, rdb, connection.Config{Keys: wakebelltype.Keys{Beat: prefix + ":"}})
	require.NoError(t, rdb.HSet(t.Context(), prefix+":bad", "definition", "{").Err())
	require.NoError(t, rdb.Do(t.Context(), "ZADD", prefix+"::schedule", 5, prefix+":bad").Err())
	require.NoError(t, s.Put(t.Context(), reports.Recurring("good", recurring.Rule{Every: time.Hour}, "x")))
	faults := map[string]bool{}
	for state, err := range s.List(t.Context(), wakebelltype.Page{}) {
		require.NoError(t, err)
		faults[state.Name] = state.Fault != ""
	}
	require.Equal(t, map[string]bool{"bad": true, "good": false}, faults)
	_, err := s.Export(t.Context(), "bad")
	require.Error(t, err)
	require.NoError(t, s.Delete(t.Context(), "bad"))
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		s := w.Client().Schedules()
		when := recurring.Rule{RRule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", Overlap: recurring.OverlapQueue}
		require.NoError(t, s.Put(t.Context(), reports.Recurring("r", when, "x")))
		dump, err := s.Export(t.Context(), "r")
		require.NoError(t, err)
		before, err := s.Get(t.Context(), "r")
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), "r"))
		require.NoError(t, s.Import(t.Context(), dump))
		after, err := s.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, before, after)
		dump.Name = "other"
		require.ErrorIs(t, s.Import(t.Context(), dump), wakebell.ErrInvalid)
	})
}

// After a panic of OnFire, the scheduler continues.
func TestOnFirePanics(t *testing.T) {
	t.Parallel()
	cfg := withBeat(recurring.SchedulerConfig{OnFire: func(recurring.Run) { panic(errors.New("user code")) }})
	wakebelltest.RunWith(t, connection.Config{Logger: quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, w.Client().Schedules().Put(t.Context(), reports.Recurring("r", recurring.Rule{Every: time.Hour}, "x")))
		w.Advance(5*time.Hour + time.Minute)
		require.Len(t, w.Delivered("reports"), 5)
	})
}

// An interval with a start is counted from the start, whenever the schedule was put.
func TestIntervalsAreCountedFromTheirStart(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, withBeat(recurring.SchedulerConfig{}), func(t *testing.T, w *wakebelltest.World) {
		now := time.Now().UTC()
		s := w.Client().Schedules()
		for name, start := range map[string]time.Duration{ // of the start, relative to now
			"soon": 4 * time.Minute, "at once": 0, "later": 25 * time.Minute, "past": -27 * time.Minute,
		} {
			require.NoError(t, s.Put(t.Context(), reports.Recurring(name,
				recurring.Rule{Every: 10 * time.Minute, Start: now.Add(start)}, "sales")))
			first := map[string]time.Duration{"soon": 4, "at once": 10, "later": 25, "past": 3}[name] * time.Minute
			next, err := s.Preview(t.Context(), name, 2)
			require.NoError(t, err)
			require.Equal(t, []time.Time{now.Add(first), now.Add(first + 10*time.Minute)}, next, name)
		}
		w.Advance(4*time.Minute + time.Second)
		require.ElementsMatch(t, []string{
			"soon@" + now.Add(4*time.Minute).Format(time.RFC3339Nano), "past@" + now.Add(3*time.Minute).Format(time.RFC3339Nano),
		}, ids(w.Delivered("reports")))
	})
}

func ids(delivered []wakebelltest.Delivery) (all []string) {
	for _, d := range delivered {
		all = append(all, d.ID)
	}
	return all
}

func TestNewValidatesItsConfiguration(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	for name, cfg := range map[string]connection.Config{
		"negative limit": {PayloadLimit: -1},
		"large limit":    {PayloadLimit: 512<<20 + 1},
		"same keys":      {Keys: wakebelltype.Keys{Timeline: "x", Payloads: "x"}},
	} {
		_, err := connection.New(rdb, cfg)
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
	}
	_, err := recurring.New(nil)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// A body over the limit is refused before anything is stored.
func TestPutRefusesLargeBodies(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	s := open(t, redistest.Shared(t), connection.Config{Keys: wakebelltype.Keys{Beat: name + ":"}, PayloadLimit: 1000})
	put := func(size int) error {
		return s.Put(t.Context(), recurring.Schedule{
			Name: "r", Topic: name, Rule: recurring.Rule{Every: time.Hour}, Body: make([]byte, size),
		})
	}
	require.NoError(t, put(500))
	require.ErrorIs(t, put(1000), wakebell.ErrInvalid)
}

func TestReconcileChangesNothingIfScheduleIsInvalid(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	s := open(t, redistest.Shared(t), connection.Config{Keys: wakebelltype.Keys{Beat: name + ":"}})
	valid := recurring.Schedule{Name: "r", Topic: name, Rule: recurring.Rule{Every: time.Hour}}
	for what, err := range map[string]error{
		"no owner":    second(s.Reconcile(t.Context(), "", valid)),
		"twice":       second(s.Reconcile(t.Context(), "o", valid, valid)),
		"no rule":     second(s.Reconcile(t.Context(), "o", valid, recurring.Schedule{Name: "s", Topic: name})),
		"long owner":  second(s.Reconcile(t.Context(), strings.Repeat("o", 129), valid)),
		"maker error": second(s.Reconcile(t.Context(), "o", recurring.Schedule{Name: "r", Topic: name, Rule: valid.Rule, Err: wakebell.ErrInvalid})),
	} {
		require.ErrorIs(t, err, wakebell.ErrInvalid, what)
	}
	require.Empty(t, redistest.Shared(t).Keys(t.Context(), name+":*").Val())
}

func second[T any](_ T, err error) error { return err }

package recurring_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// startTenant starts a node of a tenant that fires its schedules and has no handlers, so
// that the timers stay in their topics.
func startTenant(w *wakebelltest.World, prefix string, b recurring.SchedulerConfig) {
	w.StartWith(connection.Config{Prefix: prefix}, wakebell.Config{Scheduler: &b})
}

// timersOf returns the ids in a topic with this full name.
func timersOf(t *testing.T, rdb *redis.Client, topic string) []string {
	t.Helper()
	return rdb.ZRange(t.Context(), "timers_timeline:"+topic, 0, -1).Val()
}

// Schedulers of two prefixes on one Redis fire their own schedules into their own
// topics, also if both prefixes have a schedule of the same name.
func TestBeatsOfTwoPrefixes(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		var mu sync.Mutex
		fired := map[string]int{}
		for _, prefix := range []string{"billing-", "mail-", ""} {
			startTenant(w, prefix, recurring.SchedulerConfig{OnFire: func(run recurring.Run) {
				mu.Lock()
				defer mu.Unlock()
				fired[prefix+" "+run.Name]++
			}})
		}
		of := func(prefix string) *recurring.Schedules {
			return open(t, w.Redis(), connection.Config{Prefix: prefix})
		}
		every := func(d time.Duration) recurring.Schedule {
			return reports.Recurring("r", recurring.Rule{Every: d}, "x")
		}
		require.NoError(t, of("billing-").Put(t.Context(), every(time.Minute)))
		require.NoError(t, of("mail-").Put(t.Context(), every(2*time.Minute)))
		require.NoError(t, of("").Put(t.Context(), every(5*time.Minute)))
		w.Advance(20*time.Minute + time.Second)
		require.Len(t, timersOf(t, w.Redis(), "billing-reports"), 20)
		require.Len(t, timersOf(t, w.Redis(), "mail-reports"), 10)
		require.Len(t, timersOf(t, w.Redis(), "reports"), 4)
		require.Equal(t, map[string]int{"billing- r": 20, "mail- r": 10, " r": 4}, fired, "each scheduler fires only its schedules")
		require.True(t, strings.HasPrefix(timersOf(t, w.Redis(), "billing-reports")[0], "billing-r@"))
	})
}

// A Client with a prefix can read and change only the schedules of the prefix.
func TestSchedulesOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		of := func(prefix string) *recurring.Schedules {
			return open(t, w.Redis(), connection.Config{Prefix: prefix})
		}
		ctx, billing, mail, plain := t.Context(), of("billing-"), of("mail-"), of("")
		hourly := recurring.Rule{Every: time.Hour}
		require.NoError(t, billing.Put(ctx, reports.Recurring("r", hourly, "x")))
		python(t, w.Redis(), "mail-python", "mail-tasks.add")
		python(t, w.Redis(), "python", "tasks.add")

		names := func(s *recurring.Schedules) (all []string) {
			for state, err := range s.List(ctx, wakebelltype.Page{}) {
				require.NoError(t, err)
				all = append(all, state.Name+" "+state.Topic)
			}
			return all
		}
		require.Equal(t, []string{"r reports"}, names(billing))
		require.Equal(t, []string{"python tasks.add"}, names(mail), "an entry of Python with this name")
		require.ElementsMatch(t, []string{"python tasks.add", "mail-python mail-tasks.add"}, names(plain))

		for _, c := range []struct {
			s    *recurring.Schedules
			name string
		}{{mail, "r"}, {mail, "billing-r"}, {plain, "billing-r"}, {billing, "python"}} {
			_, err := c.s.Get(ctx, c.name)
			require.ErrorIs(t, err, recurring.ErrNotFound)
			_, err = c.s.RunNow(ctx, c.name)
			require.ErrorIs(t, err, recurring.ErrNotFound)
			_, err = c.s.Backfill(ctx, c.name, time.Now().Add(-time.Hour), time.Now())
			require.ErrorIs(t, err, recurring.ErrNotFound)
			_, err = c.s.Export(ctx, c.name)
			require.ErrorIs(t, err, recurring.ErrNotFound)
			_, err = c.s.Preview(ctx, c.name, 1)
			require.ErrorIs(t, err, recurring.ErrNotFound)
			require.ErrorIs(t, c.s.Pause(ctx, c.name), recurring.ErrNotFound)
			require.ErrorIs(t, c.s.Delete(ctx, c.name), recurring.ErrNotFound)
		}
		require.ErrorIs(t, plain.Put(ctx, reports.Recurring("billing-r", hourly, "x")), wakebell.ErrInvalid, "the name exists")
		dump, err := billing.Export(ctx, "r")
		require.NoError(t, err)
		require.ErrorIs(t, mail.Import(ctx, dump), wakebell.ErrInvalid)
		dump.Name = "billing-r"
		require.ErrorIs(t, plain.Import(ctx, dump), wakebell.ErrInvalid)
		dump.Name, dump.Wakebell = "r", []byte(strings.Replace(string(dump.Wakebell), `"billing-reports"`, `"mail-reports"`, 1))
		require.ErrorIs(t, billing.Import(ctx, dump), wakebell.ErrInvalid, "its topic has another prefix")
	})
}

// python saves an entry that is due once a minute, as RedBeat does.
func python(t *testing.T, rdb *redis.Client, name, task string) {
	t.Helper()
	require.NoError(t, rdb.HSet(t.Context(), "redbeat:"+name, "definition", `{"name":"`+name+`","task":"`+task+`","args":[],"kwargs":{},"options":{},`+
		`"schedule":{"__type__":"interval","every":60.0,"relative":false},"enabled":true}`).Err())
	require.NoError(t, rdb.ZAdd(t.Context(), "redbeat::schedule", redis.Z{Score: 5, Member: "redbeat:" + name}).Err())
}

// An entry of a Python process has no prefix. Its runs go to the topic that its task
// names in full, with every scheduler that fires it.
func TestPythonEntriesAmongPrefixes(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		python(t, w.Redis(), "entry", "mail-reports")
		startTenant(w, "billing-", recurring.SchedulerConfig{})
		startTenant(w, "mail-", recurring.SchedulerConfig{})
		w.Advance(20*time.Minute + 30*time.Second)
		require.Len(t, timersOf(t, w.Redis(), "mail-reports"), 21)
		require.Empty(t, timersOf(t, w.Redis(), "billing-reports"))
	})
}

// Reconcile keeps the static schedules of services with another prefix or owner, and
// schedules that were put by hand meanwhile.
func TestStaticSchedulesOfTwoServices(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		static := func(name string) recurring.Schedule {
			return reports.Recurring(name, recurring.Rule{Every: time.Hour}, "x")
		}
		start := func(prefix, owner string, schedules ...recurring.Schedule) *recurring.Schedules {
			startTenant(w, prefix, recurring.SchedulerConfig{Owner: owner, Schedules: append([]recurring.Schedule{}, schedules...)})
			return open(t, w.Redis(), connection.Config{Prefix: prefix})
		}
		count := func(s *recurring.Schedules) (n int) {
			for _, err := range s.List(t.Context(), wakebelltype.Page{}) {
				require.NoError(t, err)
				n++
			}
			return n
		}
		first := start("", "one", static("a"), static("b"), static("hand"))
		start("", "two", static("c"))
		tenant := start("p-", "one", static("d"))
		require.Equal(t, 4, count(first))
		require.Equal(t, 1, count(tenant))
		require.NoError(t, first.Put(t.Context(), static("hand")))
		start("", "one", static("a"))
		require.Equal(t, 3, count(first), "b is deleted")
		start("", "two")
		require.Equal(t, 2, count(first), "c is deleted")
		start("p-", "one")
		require.Zero(t, count(tenant))
		require.Equal(t, 2, count(first))
		require.Empty(t, w.Redis().Keys(t.Context(), "redbeat::wakebell-statics:p-*").Val())
	})
}

// After a lost reply, go-redis sends the command again. Each run is fired once.
func TestRunsByHandAreFiredOnce(t *testing.T) {
	t.Parallel()
	prefix := redistest.Name(t)
	proxy := faultproxy.Start(t, redistest.Shared(t).Options().Addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: 3, ReadTimeout: 300 * time.Millisecond})
	t.Cleanup(func() { _ = rdb.Close() })
	s := open(t, rdb, connection.Config{Prefix: prefix, Keys: wakebelltype.Keys{Beat: prefix + ":"}})
	require.NoError(t, s.Put(t.Context(), reports.Recurring("r", recurring.Rule{Every: time.Hour, Start: time.Unix(0, 0)}, "x")))
	run, err := s.RunNow(t.Context(), "r") // loads the script
	require.NoError(t, err)
	require.EqualValues(t, 1, run.Number)

	// Every command that fires by hand loses its first reply; the repetition receives
	// one.
	var mu sync.Mutex
	sent, lost := map[string]bool{}, 0
	proxy.SetRule(func(command []string) faultproxy.Fate {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(command, func(word string) bool { return strings.Contains(word, "wakebell-done:") })
		if i < 0 || sent[command[i]] {
			return faultproxy.Fate{}
		}
		sent[command[i]] = true
		lost++
		return faultproxy.Lose()
	})
	run, err = s.RunNow(t.Context(), "r")
	require.NoError(t, err)
	require.EqualValues(t, 2, run.Number)
	day := time.Now().Truncate(24 * time.Hour)
	n, err := s.Backfill(t.Context(), "r", day.Add(-240*time.Hour), day)
	require.NoError(t, err)
	require.Equal(t, 240, n)
	state, err := s.Get(t.Context(), "r")
	require.NoError(t, err)
	require.EqualValues(t, 242, state.Runs)
	require.Equal(t, 4, lost)
}

// A schedule that has not run has no last run. A run by hand sets it.
func TestLastRun(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		s := w.Client().Schedules()
		require.NoError(t, s.Put(t.Context(), reports.Recurring("r", recurring.Rule{Every: time.Hour}, "x")))
		state, err := s.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Zero(t, state.LastRun)
		run, err := s.RunNow(t.Context(), "r")
		require.NoError(t, err)
		state, err = s.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, run.Due, state.LastRun)
	})
}

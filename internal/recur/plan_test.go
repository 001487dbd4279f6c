package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// every returns an entry that ran at noon.
func every(t testing.TB, interval time.Duration, change func(*Entry)) Entry {
	t.Helper()
	e := Entry{Definition: Definition{Name: "e", Task: "t", Enabled: true}, Meta: Meta{LastRunAt: noon}}
	require.NoError(t, e.SetEvery(interval, false))
	if change != nil {
		change(&e)
	}
	require.NoError(t, e.Resolve(nil))
	return e
}

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Entry)
		now    float64
		due    []float64
		last   float64
		next   float64 // 0: never
	}{
		"too early":            {nil, 9.999999, nil, 0, 10},
		"on time":              {nil, 10, []float64{10}, 10, 20},
		"late":                 {nil, 19.9, []float64{10}, 10, 20},
		"missed, once":         {nil, 45, []float64{40}, 40, 50},
		"missed, skip":         {func(e *Entry) { e.Ours.Misfire = MisfireSkip }, 45, []float64{40}, 40, 50},
		"long ago, skip":       {func(e *Entry) { e.Ours.Misfire, e.Ours.Until = MisfireSkip, at(20) }, 45, nil, 20, 0},
		"missed, all":          {func(e *Entry) { e.Ours.Misfire = MisfireAll }, 45, []float64{10, 20, 30, 40}, 40, 50},
		"missed, all up to":    {func(e *Entry) { e.Ours.Misfire, e.Ours.MisfireLimit = MisfireAll, 2 }, 45, []float64{30, 40}, 40, 50},
		"paused":               {func(e *Entry) { e.Ours.Paused = true }, 45, nil, 0, 0},
		"disabled":             {func(e *Entry) { e.Definition.Enabled = false }, 45, nil, 0, 0},
		"not started":          {func(e *Entry) { e.Ours.Start = at(33) }, 15, nil, 0, 33},
		"started":              {func(e *Entry) { e.Ours.Start = at(33) }, 33, []float64{33}, 33, 43},
		"ended":                {func(e *Entry) { e.Ours.Until = at(20) }, 20, []float64{20}, 20, 0},
		"ended, missed once":   {func(e *Entry) { e.Ours.Until = at(10) }, 45, []float64{10}, 10, 0},
		"ended, missed all":    {func(e *Entry) { e.Ours.Until, e.Ours.Misfire = at(10), MisfireAll }, 45, []float64{10}, 10, 0},
		"ended, missed, skip":  {func(e *Entry) { e.Ours.Until, e.Ours.Misfire = at(10), MisfireSkip }, 101, nil, 10, 0},
		"ended, of a crontab":  {func(e *Entry) { e.Ours.Until, e.Ours.Misfire = at(60), MisfireAll; _ = e.SetCron("* * * * *") }, 200, []float64{60}, 60, 0},
		"the last run":         {func(e *Entry) { e.Ours.MaxRuns, e.Ours.Fired = 3, 2 }, 10, []float64{10}, 10, 0},
		"after the last run":   {func(e *Entry) { e.Ours.MaxRuns, e.Ours.Fired = 3, 3 }, 10, nil, 0, 0},
		"all, but few left":    {func(e *Entry) { e.Ours.Misfire, e.Ours.MaxRuns = MisfireAll, 2 }, 45, []float64{10, 20}, 40, 0},
		"never ran":            {func(e *Entry) { e.Meta.LastRunAt = time.Time{} }, 45.5, []float64{45.5}, 45.5, 55.5},
		"never ran, no start":  {func(e *Entry) { e.Meta.LastRunAt, e.Ours.Start = time.Time{}, at(60) }, 45.5, nil, 0, 60},
		"a whole second later": {func(e *Entry) { e.Meta.LastRunAt = at(0.25) }, 10.2, nil, 0, 10.25},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := every(t, 10*time.Second, c.change).Plan(at(c.now))
			want := Plan{}
			for _, due := range c.due {
				want.Due = append(want.Due, at(due))
			}
			if c.last != 0 {
				want.Last = at(c.last)
			}
			if c.next != 0 {
				want.Next = at(c.next)
			}
			require.Equal(t, want, p)
		})
	}
}

// A run with jitter is delayed by at most the jitter. Every computation yields the
// same instant, and every instant has one run.
func TestJitter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		jitter := time.Duration(rapid.IntRange(1, 30000).Draw(t, "ms")) * time.Millisecond
		var e Entry
		e.Definition = Definition{Name: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name"), Enabled: true}
		e.Meta.LastRunAt, e.Ours.Jitter = noon, jitter
		require.NoError(t, e.SetEvery(10*time.Second, false))
		require.NoError(t, e.Resolve(nil))
		e.Ours.Misfire = MisfireAll
		now := noon
		for n := 1; n <= 20; {
			p := e.Plan(now)
			if p.Last.IsZero() {
				require.True(t, p.Next.After(now))
				now = p.Next
				continue
			}
			for _, due := range p.Due {
				nominal := noon.Add(time.Duration(n) * 10 * time.Second)
				require.False(t, due.Before(nominal))
				require.Less(t, due.Sub(nominal), jitter)
				require.False(t, due.After(now))
				n++
			}
			e.Meta.LastRunAt = p.Last
		}
	})
}

// Latest returns the last instant that repeated calls of Next find.
func TestLatestIsLastOfWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom([]string{"* * * * *", "*/7 3 * * *", "0 0 1 * *", "30 2 * * 1", "*/20 * * * * *"}).Draw(t, "expr")
		in, err := LoadZone(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"}).Draw(t, "zone"))
		require.NoError(t, err)
		w, err := Cron(expr, in, rapid.Bool().Draw(t, "skip"))
		require.NoError(t, err)
		last := noon.Add(-time.Duration(rapid.IntRange(0, 60*86400).Draw(t, "last")) * time.Second)
		now := last.Add(time.Duration(rapid.IntRange(0, 3*86400).Draw(t, "now")) * time.Second)
		var want time.Time
		var all []time.Time
		for at := w.Next(last); !at.IsZero() && !at.After(now); at = w.Next(at) {
			want, all = at, append(all, at)
		}
		require.Equal(t, want, w.Latest(last, now))
		require.Equal(t, all[max(len(all)-5, 0):], missed(w, last, now, 5))
	})
}

func TestScoresAreNeverLate(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(-1), Score(time.Time{}))
	require.Equal(t, noon.Unix(), Score(noon.Add(999999*time.Microsecond)))
	require.Equal(t, int64(0), Score(time.Unix(-5, 0)))
}

func TestPreviewAndBetween(t *testing.T) {
	t.Parallel()
	e := every(t, 10*time.Second, func(e *Entry) { e.Ours.Until = at(60) })
	require.Equal(t, []time.Time{at(40), at(50), at(60)}, e.Preview(at(35), 9))
	all, more := e.Between(at(-20), at(15), 100)
	require.Equal(t, []time.Time{at(-20), at(-10), at(0), at(10)}, all)
	require.False(t, more)
	_, more = e.Between(at(-20), at(15), 2)
	require.True(t, more)
}

// Entries that Wakebell writes satisfy the rules of RedBeat's reader, for every kind.
func TestPythonReadsWrittenEntries(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Entry) error{
		"interval": func(e *Entry) error { return e.SetEvery(1500*time.Millisecond, true) },
		"crontab":  func(e *Entry) error { return e.SetCrontab(Crontab{Minute: "*/5", DayOfWeek: "mon-fri"}) },
		"cron":     func(e *Entry) error { return e.SetCron("0 9 * * 1-5") },
		"rrule":    func(e *Entry) error { return setRRule(e, "FREQ=DAILY;BYHOUR=9;COUNT=3;BYDAY=MO,TU") },
		"own rrule": func(e *Entry) error {
			return setRRule(e, "DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=MONTHLY;BYDAY=2MO")
		},
	} {
		e := Entry{Definition: Definition{Name: "n", Task: "t"}, Meta: Meta{LastRunAt: noon}, Ours: Ours{ID: "x", Jitter: 5}}
		require.NoError(t, set(&e), name)
		e.SetEnabled(true)
		checkStrictly(t, e.Raw())
		back, err := Read(e.Raw(), "n", time.UTC)
		require.NoError(t, err, name)
		require.True(t, back.Enabled(), name)
		require.NotEmpty(t, back.Rule(), name)
		require.Equal(t, e.Ours, back.Ours)
		require.True(t, e.SameRule(back), name)
		require.NotZero(t, back.Plan(noon).Next, name)
		back.SetEnabled(false)
		require.False(t, back.Enabled(), name)
	}
}

func setRRule(e *Entry, text string) error {
	r, err := ParseRRule(text, noon)
	if err == nil {
		e.SetRRule(r)
	}
	return err
}

// If a Python process changes the schedule of an entry that Wakebell wrote, the new
// schedule applies.
func TestPythonMayChangeWrittenEntry(t *testing.T) {
	t.Parallel()
	e := Entry{Definition: Definition{Name: "n", Task: "t"}, Meta: Meta{LastRunAt: noon}}
	require.NoError(t, e.SetCron("0 0 1 1 *"))
	e.SetEnabled(true)
	require.False(t, e.Definition.Enabled, "Python must ignore the entry")
	raw := e.Raw()
	raw.Definition = []byte(`{"name":"n","task":"t","schedule":{"__type__":"interval","every":5,"relative":false},"enabled":true}`)
	e, err := Read(raw, "n", nil)
	require.NoError(t, err)
	require.Equal(t, at(5), e.Plan(noon).Next)
}

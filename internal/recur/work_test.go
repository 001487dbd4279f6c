package recur

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

// A rule over a bound is refused. The error names the field and the bound.
func TestRulesOverBoundAreRefused(t *testing.T) {
	t.Parallel()
	list := func(n, of int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i % of)
		}
		return strings.Join(all, ",")
	}
	for text, want := range map[string]string{
		"FREQ=DAILY;COUNT=10000000":                       "COUNT: 10000000, want at most 10000",
		"FREQ=DAILY;INTERVAL=10000000":                    "INTERVAL: 10000000, want 1 to 1000000",
		"FREQ=DAILY;BYMONTH=" + list(500, 12):             "BYMONTH: 500 values, want at most 400",
		"FREQ=DAILY;BYSETPOS=1;" + fullDay(list):          "BYHOUR, BYMINUTE, BYSECOND: 86400 times, want at most 3600",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30":             "no instant found in 20000",
		"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30":              "no instant found in 20000",
		"FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30":           "no instant found in 20000",
		"FREQ=SECONDLY;INTERVAL=3600;BYMINUTE=7":          "no instant found in 20000",
		"FREQ=DAILY;BYDAY=" + strings.Repeat("MO,", 2000): "bytes, want at most 4096",
	} {
		r, err := ParseRRule(text, noon)
		if err == nil {
			e := Entry{Definition: Definition{Name: "e", Enabled: true}, Meta: Meta{LastRunAt: noon}}
			e.SetRRule(r)
			err = e.Resolve(nil)
		}
		require.ErrorIs(t, err, ErrSyntax, text)
		require.ErrorContains(t, err, want, text)
	}
}

func fullDay(list func(n, of int) string) string {
	return "BYHOUR=" + list(24, 24) + ";BYMINUTE=" + list(60, 60) + ";BYSECOND=" + list(60, 60)
}

// A rule over a bound that an earlier version stored is read with an error,
// for each field that has a bound.
func TestStoredRulesOverBoundAreReadWithError(t *testing.T) {
	t.Parallel()
	raw := Raw{
		Definition: []byte(`{"name":"n","task":"t","schedule":{"__type__":"rrule","freq":3,"count":10000000,"dtstart":0}}`),
		Meta:       []byte(`{"last_run_at":null}`),
	}
	_, err := Read(raw, "n", time.UTC)
	require.ErrorIs(t, err, ErrSyntax)
	require.ErrorContains(t, err, "COUNT: 10000000")
	raw.Definition = []byte(`{"name":"n","task":"t","schedule":{"__type__":"rrule","freq":3,"bymonth":2,"bymonthday":30,"dtstart":0}}`)
	_, err = Read(raw, "n", time.UTC)
	require.ErrorIs(t, err, ErrTooMuch)
}

// Instants that are further from the start than a time.Duration can represent cost no
// more than others.
func TestRulesFarFromTheirStart(t *testing.T) {
	t.Parallel()
	for _, freq := range []string{"YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"} {
		r, err := ParseRRule("DTSTART:00010101T000000Z\nRRULE:FREQ="+freq, noon)
		require.NoError(t, err, freq)
		rule, err := r.When(false)
		require.NoError(t, err)
		meter := rule.(walled).work
		at := rule.Next(noon)
		require.NoError(t, meter.err, freq)
		require.True(t, at.After(noon) && at.Before(noon.AddDate(1, 0, 1)), "%s: %v", freq, at)
		require.Less(t, meter.ticks, 400, freq)
	}
}

// Preview stops when its context ends.
func TestPreviewEndsWithItsContext(t *testing.T) {
	t.Parallel()
	e := every(t, time.Hour, func(e *Entry) {
		r, err := ParseRRule("FREQ=YEARLY;BYDAY=MO", noon)
		require.NoError(t, err)
		e.SetRRule(r)
	})
	require.Len(t, e.Preview(noon, 10_000), 10_000)
	require.NoError(t, e.Err())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Within(ctx)
	require.Less(t, len(e.Preview(noon, 10_000)), 10_000)
	require.ErrorIs(t, e.Err(), context.Canceled)
}

// A relative interval that was missed for a long time is computed without iteration.
func TestRelativeIntervalsThatWereMissedForLong(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Microsecond, 7 * time.Second, time.Minute, 90 * time.Second, 90 * time.Minute, 5 * time.Hour} {
		e := Entry{Definition: Definition{Name: "e", Enabled: true}, Meta: Meta{LastRunAt: noon.AddDate(-50, 0, 0).Add(12345 * time.Millisecond)}}
		require.NoError(t, e.SetEvery(every, true))
		e.Ours.Misfire = MisfireAll
		require.NoError(t, e.Resolve(nil))
		p := e.Plan(noon)
		require.NoError(t, e.Err())
		require.Len(t, p.Due, DefaultMisfireLimit, every)
		require.WithinRange(t, p.Last, noon.Add(-every), noon, every)
		require.Equal(t, p.Last, p.Due[len(p.Due)-1], every)
		require.Equal(t, e.when.Next(p.Last), p.Next)
		for i, due := range p.Due[1:] {
			require.Equal(t, e.when.Next(p.Due[i]), due, every)
		}
	}
}

// drawRule draws a rule of any kind that the library can evaluate.
func drawRule(t *rapid.T) rrule.ROption {
	some := func(name string, most int, from ...[2]int) []int {
		var all []*rapid.Generator[int]
		for _, f := range from {
			all = append(all, rapid.IntRange(f[0], f[1]))
		}
		return rapid.SliceOfNDistinct(rapid.OneOf(all...), 0, most, rapid.ID[int]).Draw(t, name)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 900*86400).Draw(t, "start")) * time.Second)
	o := rrule.ROption{
		Freq: rrule.Frequency(rapid.IntRange(0, 3).Draw(t, "freq")), Interval: rapid.IntRange(1, 4).Draw(t, "interval"), Dtstart: start,
		Byhour: some("hour", 2, [2]int{0, 23}), Byminute: some("minute", 2, [2]int{0, 59}), Wkst: rruleDays[rapid.IntRange(0, 6).Draw(t, "wkst")],
		Bymonth: some("month", 3, [2]int{1, 12}), Bysetpos: some("setpos", 2, [2]int{1, 2}, [2]int{-2, -1}),
	}
	// Not all of these together: for a rule without instants, the library iterates to
	// the year 9999.
	kind := rapid.IntRange(0, 5).Draw(t, "days")
	switch kind {
	case 0:
		o.Bymonthday = some("monthday", 3, [2]int{1, 28}, [2]int{-28, -1})
	case 1:
		o.Byyearday, o.Bymonth = some("yearday", 3, [2]int{1, 365}, [2]int{-365, -1}), nil
	case 2:
		// Not the last weeks: the library computes their numbers incorrectly in some
		// years.
		o.Byweekno, o.Bymonth = some("weekno", 3, [2]int{1, 51}, [2]int{-51, -1}), nil
	case 3:
		o.Byeaster, o.Bymonth = some("easter", 2, [2]int{-60, 200}), nil
	}
	if kind < 4 {
		return o
	}
	most := map[rrule.Frequency]int{rrule.YEARLY: 50, rrule.MONTHLY: 4}[o.Freq]
	if len(o.Bymonth) > 0 {
		most = min(most, 4) // the library panics beyond the end of a month
	}
	for _, d := range some("weekday", 3, [2]int{0, 6}) {
		day := rruleDays[d]
		if most > 0 && kind == 4 {
			day = day.Nth(rapid.IntRange(1, most).Draw(t, "nth") * rapid.SampledFrom([]int{1, -1}).Draw(t, "side"))
		}
		o.Byweekday = append(o.Byweekday, day)
	}
	return o
}

// The evaluator agrees with the library over ten years for daily, weekly, monthly and
// yearly rules.
func TestRareRulesAgainstLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := drawRule(t)
		o.Until = o.Dtstart.AddDate(10, 0, 0)
		plain, err := rrule.NewRRule(o)
		require.NoError(t, err)
		ours, err := rruleOf(o, time.UTC, false)
		require.NoError(t, err)
		at, next := o.Dtstart.Add(-time.Second), plain.Iterator()
		for range 40 {
			want, _ := next()
			at = ours.Next(at)
			require.True(t, at.Equal(want), "got %v, want %v", at, want)
			if want.IsZero() {
				break
			}
		}
	})
}

// Finding an instant ends within the bound for any rule.
func FuzzRRuleWork(f *testing.F) {
	for _, s := range []string{
		"FREQ=DAILY;COUNT=10000000", "FREQ=DAILY;COUNT=10000", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3",
		"DTSTART:00010101T000000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYSETPOS=-1", "FREQ=MONTHLY;BYDAY=53MO", "FREQ=YEARLY;BYEASTER=-300",
	} {
		f.Add(s, int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, last int64) {
		r, err := ParseRRule(text, noon)
		if err != nil {
			return
		}
		for _, skip := range []bool{false, true} {
			rule, err := r.When(skip)
			require.NoError(t, err)
			w := rule.(walled).work
			w.begin(planSteps)
			from := time.Unix(last%(maxYear*365*daySeconds), 0)
			rule.Latest(from, from.AddDate(1, 0, 0))
			rule.Next(from)
			require.LessOrEqual(t, w.ticks, planSteps+10)
		}
	})
}

package recur

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

// These are the examples of RFC 5545, 3.8.5.3, with the first instants that it lists,
// in New York.
func TestExamplesOfTheRFC(t *testing.T) {
	t.Parallel()
	const start = "DTSTART;TZID=America/New_York:19970902T090000\nRRULE:"
	for rule, want := range map[string]string{
		"FREQ=DAILY;COUNT=10":                                                 "0902 0903 0904 0905 0906 0907 0908 0909 0910 0911 -",
		"FREQ=DAILY;UNTIL=19971224T000000Z":                                   "0902 0903 0904 0905",
		"FREQ=DAILY;INTERVAL=2":                                               "0902 0904 0906 0908",
		"FREQ=DAILY;INTERVAL=10;COUNT=5":                                      "0902 0912 0922 1002 1012 -",
		"FREQ=WEEKLY;COUNT=10":                                                "0902 0909 0916 0923 0930 1007 1014 1021 1028 1104 -",
		"FREQ=WEEKLY;INTERVAL=2;WKST=SU":                                      "0902 0916 0930 1014 1028 1111",
		"FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH":              "0902 0904 0909 0911 0916 0918 0923 0925 0930 1002 -",
		"FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH":                  "0902 0904 0916 0918 0930 1002 1014 1016 -",
		"FREQ=MONTHLY;BYMONTHDAY=-3":                                          "0928 1029 1128 1229",
		"FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15":                               "0902 0915 1002 1015 1102 1115 1202 1215 0102 0115 -",
		"FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1":                               "0930 1001 1031 1101 1130 1201 1231 0101 0131 0201 -",
		"FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13":            "0910 0911 0912 0913 0310 0311",
		"FREQ=MONTHLY;INTERVAL=2;BYDAY=TU":                                    "0902 0909 0916 0923 0930 1104",
		"FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13":                                 "0213 0313 1113 0813 1013",
		"FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13":                  "0913 1011 1108 1213",
		"FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3":                      "0904 1007 1106 -",
		"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2":                       "0929 1030 1127 1230",
		"FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200":                 "0101 0409 0718 0101 0410",
		"FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8":                                  "0604 0611 0618 0625 0702",
		"FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8": "1104 1106 1108",
		"FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5":                               "0915 0930 1015 1030 1115 -",
	} {
		require.Equal(t, want, listed(t, start+rule, "0102", len(strings.Fields(want))), rule)
	}
	for rule, want := range map[string]string{
		"FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z":          "02 09:00 02 12:00 02 15:00 -", // 17:00 in New York
		"FREQ=MINUTELY;INTERVAL=15;COUNT=6":                      "02 09:00 02 09:15 02 09:30 02 09:45 02 10:00 02 10:15 -",
		"FREQ=MINUTELY;INTERVAL=90;COUNT=4":                      "02 09:00 02 10:30 02 12:00 02 13:30 -",
		"FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,40": "02 09:00 02 09:40 02 10:00",
		"FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10":                  "02 09:00 02 09:20 02 09:40 02 10:00 02 10:20 02 10:40 03 09:00",
	} {
		n := strings.Count(want, ":") + strings.Count(want, "-")
		require.Equal(t, want, listed(t, start+rule, "02 15:04", n), rule)
	}
}

// listed returns the first n instants of a rule in New York's wall time; - is the
// end.
func listed(t *testing.T, text, layout string, n int) string {
	t.Helper()
	ny, err := LoadZone("America/New_York")
	require.NoError(t, err)
	r, err := ParseRRule(text, time.Time{})
	require.NoError(t, err, text)
	again, err := ParseRRule(r.String(), time.Time{})
	require.NoError(t, err, r.String())
	require.Equal(t, r.String(), again.String())
	rule, err := again.When(false)
	require.NoError(t, err)
	var all []string
	for at := time.Date(1997, 9, 1, 0, 0, 0, 0, time.UTC); len(all) < n; {
		if at = rule.Next(at); at.IsZero() {
			all = append(all, "-")
			break
		}
		// The RFC's list begins with the start.
		all = append(all, strings.Replace(at.In(ny).Format(strings.ReplaceAll(layout, "02 ", "_2 ")), " ", "0", strings.Count(at.In(ny).Format("_2"), " ")))
	}
	return strings.Join(all, " ")
}

// The fast evaluators agree with the library, which iterates from the start.
func TestRRuleAgainstLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, low, high int) []int {
			return rapid.SliceOfNDistinct(rapid.IntRange(low, high), 0, 3, rapid.ID[int]).Draw(t, name)
		}
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).
			Add(time.Duration(rapid.IntRange(0, 40*86400).Draw(t, "start")) * time.Second)
		o := rrule.ROption{
			Freq:     rrule.Frequency(rapid.SampledFrom([]int{1, 2, 3, 4, 5, 5, 6}).Draw(t, "freq")),
			Interval: rapid.IntRange(1, 50).Draw(t, "interval"), Dtstart: start,
			Byhour: some("hour", 0, 23), Byminute: some("minute", 0, 59), Wkst: rruleDays[rapid.IntRange(0, 6).Draw(t, "wkst")],
		}
		if o.Freq >= rrule.HOURLY {
			// With such an interval the phase meets every hour and minute of a week.
			// Otherwise the library iterates without end.
			o.Interval = rapid.SampledFrom([]int{1, 11, 13, 17}).Draw(t, "coprime")
		}
		if rapid.Bool().Draw(t, "days") {
			for _, d := range some("weekday", 0, 6) {
				o.Byweekday = append(o.Byweekday, rruleDays[d])
			}
		}
		if rapid.Bool().Draw(t, "counted") {
			o.Count = rapid.IntRange(1, 30).Draw(t, "count")
		}
		o.Until = start.AddDate(0, 0, rapid.IntRange(1, 50).Draw(t, "until"))
		switch o.Freq { // the library iterates over the whole range
		case rrule.SECONDLY:
			o.Until = start.Add(30 * time.Minute)
		case rrule.MINUTELY:
			o.Until = start.Add(24 * time.Hour)
		default:
		}
		plain, err := rrule.NewRRule(o)
		require.NoError(t, err)
		ours, err := rruleOf(o, time.UTC, false)
		require.NoError(t, err)
		at := start.Add(-time.Second)
		next := plain.Iterator()
		for range 50 {
			want, more := next()
			if !more {
				require.Zero(t, ours.Next(at))
				break
			}
			got := ours.Next(at)
			require.Equal(t, want, got)
			at = got
		}
		from := start.Add(time.Duration(rapid.IntRange(-3600, 3*86400).Draw(t, "from")) * time.Second)
		require.Equal(t, plain.After(from, false).UTC(), ours.Next(from).UTC())
	})
}

// The next instant of an old rule is as cheap as that of a new one, and a rule
// without instants ends.
func TestRRuleIsCheap(t *testing.T) {
	t.Parallel()
	old := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	now := time.Date(2026, 11, 21, 7, 50, 19, 0, time.UTC)
	for _, freq := range []string{"SECONDLY", "MINUTELY", "HOURLY", "MINUTELY;BYDAY=MO", "DAILY", "WEEKLY"} {
		r, err := ParseRRule("FREQ="+freq, old)
		require.NoError(t, err)
		w, err := r.When(false)
		require.NoError(t, err)
		best := time.Hour
		for range 100 { // the machine may stall in one of them
			began := time.Now()
			w.Next(now)
			best = min(best, time.Since(began))
		}
		require.Less(t, best, 50*time.Millisecond, freq) // an iteration from the start takes longer
	}
	for _, never := range []string{"FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "FREQ=HOURLY;INTERVAL=24;BYHOUR=5", "FREQ=SECONDLY;UNTIL=19700101T000001Z"} {
		r, err := ParseRRule(never, old)
		require.NoError(t, err)
		w, err := r.When(false)
		require.NoError(t, err)
		require.Zero(t, w.Next(now), never)
	}
}

// BenchmarkMinutelyRRule compares a rule that began in 1970 with one that began an
// hour ago: its next instant, and the work to read its entry.
func BenchmarkMinutelyRRule(b *testing.B) {
	now := time.Date(2026, 11, 21, 7, 50, 19, 0, time.UTC)
	for name, start := range map[string]time.Time{
		"began=1970": time.Unix(0, 0).UTC(), "began=now": now.Add(-time.Hour).Truncate(time.Minute),
	} {
		read := func() When {
			r, err := ParseRRule("FREQ=MINUTELY", start)
			require.NoError(b, err)
			w, err := r.When(false)
			require.NoError(b, err)
			return w
		}
		b.Run("next/"+name, func(b *testing.B) {
			for w := read(); b.Loop(); {
				w.Next(now)
			}
		})
		b.Run("read/"+name, func(b *testing.B) {
			for b.Loop() {
				read().Next(now)
			}
		})
	}
}

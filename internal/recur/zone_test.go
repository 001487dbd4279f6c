package recur

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"github.com/stretchr/testify/require"
)

// oracle computes the instants of a window minute by minute. Another library decides
// which wall times match. Each wall time counts once, or each time with twice.
func oracle(matches map[int]bool, twice bool, in *time.Location, from, to time.Time) (all []time.Time) {
	z := zone{in: in}
	seen := map[time.Time]bool{}
	previous := z.wall(from.Add(-3 * time.Hour))
	for at := from.Add(-3 * time.Hour); at.Before(to); at = at.Add(time.Minute) {
		wall := z.wall(at)
		// Wall times that the clock skipped count at this minute.
		for gap := previous.Add(time.Minute); gap.Before(wall); gap = gap.Add(time.Minute) {
			if matches[minuteOf(gap)] && !seen[gap] {
				all = append(all, at)
			}
			seen[gap] = true
		}
		if matches[minuteOf(wall)] && (twice || !seen[wall]) {
			all = append(all, at)
		}
		seen[wall], previous = true, wall
	}
	return slices.DeleteFunc(slices.Compact(append([]time.Time{}, all...)), func(t time.Time) bool { return t.Before(from) })
}

func minuteOf(wall time.Time) int { return wall.Hour()*60 + wall.Minute() }

// minutes returns the minutes of a day that match an expression for all days,
// according to the other library.
func minutes(t *testing.T, expr string) map[int]bool {
	t.Helper()
	all := map[int]bool{}
	for m := range 24 * 60 {
		due, err := gronx.New().IsDue(expr, time.Date(2026, 1, 1, 0, m, 0, 0, time.UTC))
		require.NoError(t, err)
		all[m] = due
	}
	return all
}

// change is an instant at which the offset of a zone changes.
type change struct {
	at            int64
	before, after int
}

// changes returns the changes of a zone within a range.
func changes(in *time.Location, from, to time.Time) (all []change) {
	for at := from; ; {
		_, end := at.In(in).ZoneBounds()
		if end.IsZero() || end.After(to) {
			return all
		}
		if !end.After(at) { // package time, on the last day of a leap year
			at = at.Truncate(wholeDay).Add(wholeDay)
			continue
		}
		_, before := end.Add(-time.Second).In(in).Zone()
		_, after := end.In(in).Zone()
		all = append(all, change{end.Unix(), before, after})
		at = end
	}
}

// Around each change of the offset of every IANA zone over four years, cron and
// crontab have the instants of the oracle. Changes that zones share are compared
// once.
func TestZonesAgainstOracle(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/zones.txt")
	require.NoError(t, err)
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	to := time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	exprs := map[string]map[int]bool{}
	for _, expr := range []string{"*/7 * * * *", "30 1,2,3 * * *", "0 0 * * *"} {
		exprs[expr] = minutes(t, expr)
	}
	done := map[change]bool{}
	for n, name := range strings.Fields(string(text)) {
		if testing.Short() && n%9 != 0 {
			continue
		}
		in, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, c := range append(changes(in, from, to), change{at: from.Unix() + 86400, before: offsetAt(in, from)}) {
			if done[c] {
				continue
			}
			done[c] = true
			compareAround(t, exprs, name, in, time.Unix(c.at, 0).UTC())
		}
	}
	require.Greater(t, len(done), 20)
}

func offsetAt(in *time.Location, at time.Time) int {
	_, offset := at.In(in).Zone()
	return offset
}

func compareAround(t *testing.T, exprs map[string]map[int]bool, name string, in *time.Location, at time.Time) {
	t.Helper()
	from, to := at.Add(-4*time.Hour).Truncate(time.Minute), at.Add(5*time.Hour).Truncate(time.Minute)
	for expr, matches := range exprs {
		want := oracle(matches, strings.HasPrefix(expr, "*"), in, from, to)
		byCron, err := Cron(expr, in, false)
		require.NoError(t, err)
		fields := strings.Fields(expr)
		byCrontab, err := CrontabIn(Crontab{Minute: fields[0], Hour: fields[1]}, in, false)
		require.NoError(t, err)
		for _, rule := range []When{byCron, byCrontab} {
			got := []time.Time{}
			for next := rule.Next(from.Add(-time.Second)); next.Before(to); next = rule.Next(next) {
				got = append(got, next)
			}
			require.Equal(t, want, got, "%s in %s around %s", expr, name, at)
		}
	}
}

// Cron and crontab agree with the library on days, months and weekdays.
func TestCronAgainstOracle(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"0 12 1,15 * *", "15 9 * * 1-5", "0 0 29 2 *", "30 6 13 * 5", "5 4 * 3-6 7", "0 0 1 */3 *", "59 23 31 * *", "0 8 * * 5-7",
	} {
		rule, err := Cron(expr, time.UTC, false)
		require.NoError(t, err)
		at := time.Date(2023, 5, 17, 10, 11, 12, 0, time.UTC)
		for range 30 {
			// The library's next tick is within a day, so the test checks all days on
			// the way.
			next := rule.Next(at)
			fields := strings.Fields(expr)
			byHand := time.Date(at.Year(), at.Month(), at.Day(), next.Hour(), next.Minute(), 0, 0, time.UTC)
			for !byHand.After(at) || !matches(t, fields, byHand) {
				byHand = byHand.AddDate(0, 0, 1)
			}
			require.Equal(t, byHand, next, expr)
			at = next
		}
	}
}

func matches(t *testing.T, fields []string, at time.Time) bool {
	t.Helper()
	due, err := gronx.New().IsDue(strings.Join(fields, " "), at)
	require.NoError(t, err)
	return due
}

func TestGaps(t *testing.T) {
	t.Parallel()
	berlin, err := LoadZone("Europe/Berlin")
	require.NoError(t, err)
	eve := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	after, err := Cron("30 2 * * *", berlin, false)
	require.NoError(t, err)
	require.Equal(t, "2026-03-29T01:00:00Z", after.Next(eve).Format(time.RFC3339), "the first instant after the gap")
	skipping, err := Cron("30 2 * * *", berlin, true)
	require.NoError(t, err)
	require.Equal(t, "2026-03-30T00:30:00Z", skipping.Next(eve).Format(time.RFC3339))
	autumn := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	first := after.Next(autumn)
	require.Equal(t, "2026-10-25T00:30:00Z", first.Format(time.RFC3339), "the first pass")
	require.Equal(t, "2026-10-26T01:30:00Z", after.Next(first).Format(time.RFC3339), "the second pass does not count")

	apia, err := LoadZone("Pacific/Apia")
	require.NoError(t, err)
	noon, err := Cron("0 12 * * *", apia, false)
	require.NoError(t, err)
	day := noon.Next(time.Date(2011, 12, 29, 20, 0, 0, 0, time.UTC))
	require.Equal(t, "2011-12-29T22:00:00Z", day.Format(time.RFC3339))
	require.Equal(t, "2011-12-30T10:00:00Z", noon.Next(day).Format(time.RFC3339), "the zone skipped a day")
}

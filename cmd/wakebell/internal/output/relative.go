package output

import (
	"math"
	"time"

	"github.com/dustin/go-humanize"
)

// farAway is the distance from which an instant is shown as a date.
const farAway = 90 * humanize.Day

// units are the units of a relative instant, each up to a distance.
var units = []struct {
	below, unit time.Duration
	name        string
}{
	{2 * time.Minute, time.Second, "s"},
	{2 * time.Hour, time.Minute, "min"},
	{2 * humanize.Day, time.Hour, "h"},
	{math.MaxInt64, humanize.Day, "d"},
}

var past, future = magnitudes("%d ", " %s"), magnitudes("%s %d ", "")

func magnitudes(before, after string) []humanize.RelTimeMagnitude {
	all := []humanize.RelTimeMagnitude{{D: time.Second, Format: "now", DivBy: 1}}
	for _, u := range units {
		all = append(all, humanize.RelTimeMagnitude{D: u.below, Format: before + u.name + after, DivBy: u.unit})
	}
	return all
}

// Relative formats an instant as its distance from now, rounded to a unit: "in 3 h",
// "4 min ago". An instant over 90 days away is a date in UTC; none is empty.
func Relative(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	gap := t.Sub(now)
	if gap.Abs() >= farAway {
		return t.UTC().Format(time.DateOnly)
	}
	for _, u := range units {
		if rounded := gap.Round(u.unit); rounded.Abs() < u.below {
			gap = rounded
			break
		}
	}
	way := future
	if gap < 0 {
		way = past
	}
	return humanize.CustomRelTime(now.Add(gap), now, "ago", "in", way)
}

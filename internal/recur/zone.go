package recur

import (
	"fmt"
	"time"
	_ "time/tzdata" // zones are part of a schedule, so they must be there
)

// zone is a time zone with what becomes of times that its clocks do not show.
type zone struct {
	in *time.Location
	// skipGaps drops the times of a gap; else they are the first instant after
	// it.
	skipGaps bool
}

// LoadZone is the zone of an IANA name, "UTC" among them; the local zone of a
// machine is refused, for every node has another.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone: %w: %q, want a name such as Europe/Berlin", ErrSyntax, name)
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone: %w: %w", ErrSyntax, err)
	}
	return in, nil
}

// wall is what clocks of the zone show at an instant, written as one of UTC.
func (z zone) wall(t time.Time) time.Time {
	_, offset := t.In(z.in).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// offsets are looked for so far from a wall time: no zone is further from UTC,
// and none changes twice within.
var probes = []time.Duration{-26 * time.Hour, -13 * time.Hour, 0, 13 * time.Hour, 26 * time.Hour}

// instant is when clocks of the zone show a time: the first time that they do,
// where they do so twice. In a gap it is the first instant after, or one in the
// distant past where gaps are skipped.
func (z zone) instant(wall time.Time) time.Time {
	if z.in == time.UTC {
		return wall
	}
	var first, before time.Time
	for i, probe := range probes {
		_, offset := wall.Add(probe).In(z.in).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if i == 0 {
			before = at
		}
		if z.wall(at).Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	switch {
	case !first.IsZero():
		return first
	case z.skipGaps:
		return time.Time{}
	}
	return z.after(wall, before)
}

// after is the end of the gap that a wall time is in. By the offset from before
// the gap it is an instant after it, within a day or so.
func (z zone) after(wall, by time.Time) time.Time {
	at := by
	for {
		start, _ := at.In(z.in).ZoneBounds()
		if start.IsZero() {
			return by.UTC()
		}
		// The gap is the one whose clocks jump over the wall time.
		before := z.wall(start.Add(-time.Nanosecond))
		if !before.After(wall) && z.wall(start).After(wall) {
			return start.UTC()
		}
		if start.Before(by.Add(-72 * time.Hour)) {
			return by.UTC()
		}
		at = start.Add(-time.Nanosecond)
	}
}

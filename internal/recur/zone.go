package recur

import (
	"fmt"
	"time"
	_ "time/tzdata" // schedules need zones on every machine
)

// zone is a time zone with a policy for local times that do not exist in it.
type zone struct {
	in *time.Location
	// skipGaps drops the times of a gap; else they resolve to the first instant
	// after it.
	skipGaps bool
}

// LoadZone returns the zone of an IANA name, including "UTC". It refuses the local zone
// of the machine, which may differ between nodes.
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

// wall returns the local time of an instant, represented as an instant of UTC.
func (z zone) wall(t time.Time) time.Time {
	_, offset := t.In(z.in).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// probes are the distances from a wall time at which offsets are looked up: no zone is
// further from UTC, and none changes twice within.
var probes = []time.Duration{-26 * time.Hour, -13 * time.Hour, 0, 13 * time.Hour, 26 * time.Hour}

// instant returns the instant of a local time; the first one if there are two. In a gap
// it is the first instant after it, or zero if gaps are skipped.
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

// after returns the end of the gap that contains a wall time. by is the instant of the
// wall time with the offset before the gap, which is at most about a day after the gap.
func (z zone) after(wall, by time.Time) time.Time {
	at := by
	for {
		start, _ := at.In(z.in).ZoneBounds()
		if start.IsZero() {
			return by.UTC()
		}
		// The gap is the one that contains the wall time.
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

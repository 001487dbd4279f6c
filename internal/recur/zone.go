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

// farthestOffset is more than the distance of any zone from UTC, and than any change of
// a clock.
const farthestOffset = 26 * time.Hour

// span is a period in which a zone has the same offset. The next one may have it too.
type span struct {
	start, end time.Time // the end is not included; zero: unbounded
	offset     time.Duration
}

// span returns the period of an instant.
func (z zone) span(t time.Time) span {
	local := t.In(z.in)
	_, offset := local.Zone()
	start, end := local.ZoneBounds()
	// Beyond the years of its table, package time takes all years for 365 days: on the
	// last day of a leap year the end is the beginning of that day.
	if !end.IsZero() && !end.After(t) {
		end = t.Truncate(wholeDay).Add(wholeDay)
	}
	return span{start, end, time.Duration(offset) * time.Second}
}

// wall returns the local time of an instant, represented as an instant of UTC.
func (s span) wall(t time.Time) time.Time { return t.UTC().Add(s.offset) }

// instant is the reverse of wall. The period may not have it.
func (s span) instant(wall time.Time) time.Time { return wall.Add(-s.offset) }

func (s span) has(t time.Time) bool {
	return (s.start.IsZero() || !t.Before(s.start)) && (s.end.IsZero() || t.Before(s.end))
}

// wall returns the local time of an instant, represented as an instant of UTC.
func (z zone) wall(t time.Time) time.Time {
	_, offset := t.In(z.in).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns the instant of a local time; the first one if there are two. In a gap
// it is the first instant after it, or zero if gaps are skipped.
func (z zone) instant(wall time.Time) time.Time {
	if z.in == time.UTC {
		return wall
	}
	for s := z.span(wall.Add(-farthestOffset)); ; {
		if at := s.instant(wall); s.end.IsZero() || at.Before(s.end) {
			return at
		}
		next := z.span(s.end)
		if wall.Before(next.wall(s.end)) {
			if z.skipGaps {
				return time.Time{}
			}
			return s.end.UTC()
		}
		s = next
	}
}

// shown returns the last local time that the clock showed before it was last put back,
// if that was less than farthestOffset before t; else the zero time.
func (z zone) shown(t time.Time) (last time.Time) {
	for s := z.span(t); !s.start.IsZero() && t.Sub(s.start) < farthestOffset; {
		end := s.start.Add(-time.Nanosecond)
		s = z.span(end)
		if wall := s.wall(end); wall.After(last) {
			last = wall
		}
	}
	return last
}

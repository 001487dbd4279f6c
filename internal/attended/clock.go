package attended

import (
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Due returns the instant up to which timers of a topic are due: the present one by the clock of
// Redis, which a topic with due timers tells. Of one without, it is the zero time, and of one that
// could not be read, it is that of the local clock.
func Due(o wakebelltype.Overview) time.Time {
	switch {
	case !o.Stats.OldestDue.IsZero():
		return o.Stats.OldestDue.Add(o.Stats.Lag)
	case o.Err != nil:
		return time.Now()
	default:
		return time.Time{}
	}
}

// Now returns the present instant by the clock of Redis. Where no timer of the topic is due, it is
// that of the local clock, but within the minute with which the counts of Client.Throughput end.
func Now(o wakebelltype.Overview, counts func() (wakebelltype.Throughput, error)) time.Time {
	if !o.Stats.OldestDue.IsZero() {
		return Due(o)
	}
	now := time.Now()
	done, err := counts()
	if n := len(done.Points); err == nil && n > 0 {
		first := done.Points[n-1].At
		if last := first.Add(time.Minute - time.Millisecond); now.After(last) {
			return last
		}
		if now.Before(first) {
			return first
		}
	}
	return now
}

package recur

import (
	"hash/fnv"
	"time"
)

// Plan says what to do with an entry.
type Plan struct {
	// Due has the instants to fire now, oldest first.
	Due []time.Time
	// Last is the new last_run_at; zero: the entry is not due.
	Last time.Time
	// Next is the next instant at which the entry is due (after Last, if it is due
	// now); zero: never.
	Next time.Time
}

// Plan returns the plan of the entry at an instant of Redis's clock. If [Entry.Err] is
// not nil, Next is unknown.
func (e Entry) Plan(now time.Time) Plan {
	e.begin(planSteps)
	if !e.Enabled() || e.over() {
		return Plan{}
	}
	last := e.Meta.LastRunAt
	if last.IsZero() {
		return e.first(now)
	}
	first := e.after(last)
	if first.IsZero() || e.shifted(first).After(now) {
		return Plan{Next: e.shifted(first)}
	}
	latest := e.latest(first, now)
	p := Plan{Due: e.missed(last, first, latest, now), Last: latest}
	return e.limited(p)
}

// first returns the plan of an entry that never ran. It is due at once unless it has a
// start.
func (e Entry) first(now time.Time) Plan {
	at := now.Truncate(time.Microsecond)
	switch {
	case e.Ours.Start.After(now):
		return Plan{Next: e.shifted(e.after(at))}
	case !e.Ours.Until.IsZero() && at.After(e.Ours.Until):
		return Plan{}
	}
	return e.limited(Plan{Due: []time.Time{at}, Last: at})
}

// over reports whether MaxRuns is reached.
func (e Entry) over() bool { return e.Ours.MaxRuns > 0 && e.Ours.Fired >= e.Ours.MaxRuns }

// limited reduces a plan to the remaining runs, and sets Next.
func (e Entry) limited(p Plan) Plan {
	fired := e.Ours.Fired + int64(len(p.Due))
	if left := e.Ours.MaxRuns - e.Ours.Fired; e.Ours.MaxRuns > 0 && int64(len(p.Due)) > left {
		p.Due = p.Due[:left]
	}
	if e.Ours.MaxRuns > 0 && fired >= e.Ours.MaxRuns {
		return p
	}
	p.Next = e.shifted(e.after(p.Last))
	return p
}

// after returns the next instant within start and until, without jitter.
func (e Entry) after(last time.Time) time.Time {
	at := e.when.Next(last)
	if start := e.Ours.Start; !start.IsZero() && !at.IsZero() && at.Before(start) {
		if _, ok := e.when.(Interval); ok {
			at = start
		} else {
			at = e.when.Next(start.Add(-time.Microsecond))
		}
	}
	if !e.Ours.Until.IsZero() && at.After(e.Ours.Until) {
		return time.Time{}
	}
	return at
}

// latest returns the last instant that is due, given that first is due.
func (e Entry) latest(first, now time.Time) time.Time {
	bound := now
	if !e.Ours.Until.IsZero() && e.Ours.Until.Before(bound) { // which is not before first, and may be first itself
		bound = e.Ours.Until
	}
	latest := e.when.Latest(first, bound)
	if latest.IsZero() {
		return first
	}
	if !e.shifted(latest).After(now) {
		return latest
	}
	// The jitter delays the last one beyond now, but not those before it.
	if before := e.when.Latest(first, latest.Add(-time.Nanosecond)); !before.IsZero() {
		return before
	}
	return first
}

// missed returns the instants to fire, with their jitter.
func (e Entry) missed(last, first, latest, now time.Time) []time.Time {
	switch e.Ours.Misfire {
	case MisfireSkip:
		if now.Sub(e.shifted(latest)) > Grace {
			return nil
		}
	case MisfireAll:
		limit := e.Ours.MisfireLimit
		if limit == 0 {
			limit = DefaultMisfireLimit
		}
		if first.Equal(latest) {
			break
		}
		all := missed(e.when, first, latest, limit)
		if len(all) < limit {
			all = append([]time.Time{first}, all...)
		}
		for i := range all {
			all[i] = e.shifted(all[i])
		}
		return all
	}
	return []time.Time{e.shifted(latest)}
}

// shifted adds the jitter to an instant. It is the same on every node, and before the
// next instant.
func (e Entry) shifted(at time.Time) time.Time {
	if e.Ours.Jitter <= 0 || at.IsZero() {
		return at
	}
	most := e.Ours.Jitter
	if next := e.after(at); !next.IsZero() {
		most = min(most, next.Sub(at))
	}
	if most < time.Microsecond {
		return at
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.Definition.Name)) // a hash never fails
	var us [8]byte
	for i, n := 0, at.UnixMicro(); i < len(us); i++ {
		us[i], n = byte(n), n>>8
	}
	_, _ = h.Write(us[:])
	sum := h.Sum64()
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return at.Add(time.Duration(sum % uint64(most)).Truncate(time.Microsecond))
}

// LastRun returns the latest instant that was fired; zero: none or unknown.
func (e Entry) LastRun() time.Time {
	if e.Ours.LastRun.IsZero() && e.Meta.Runs > 0 {
		return e.Meta.LastRunAt
	}
	return e.Ours.LastRun
}

// Due returns the instant at which the entry is due, in the past if it is overdue;
// zero: never, or unknown because the entry never ran.
func (e Entry) Due() time.Time {
	if !e.Enabled() || e.over() || e.Meta.LastRunAt.IsZero() {
		return time.Time{}
	}
	e.begin(planSteps)
	return e.shifted(e.after(e.Meta.LastRunAt))
}

// Skip skips the instants until now.
func (e *Entry) Skip(now time.Time) {
	e.begin(planSteps)
	if last := e.Meta.LastRunAt; !last.IsZero() {
		if latest := e.when.Latest(last, now); !latest.IsZero() {
			e.Meta.LastRunAt = latest
		}
	}
}

// Preview returns the next n instants after an instant, without overdue ones.
func (e Entry) Preview(after time.Time, n int) []time.Time {
	var all []time.Time
	if !e.Enabled() {
		return nil
	}
	if left := e.Ours.MaxRuns - e.Ours.Fired; e.Ours.MaxRuns > 0 && int64(n) > left {
		n = int(max(left, 0))
	}
	e.begin(listSteps)
	last := e.Meta.LastRunAt
	if last.IsZero() {
		last = after
	}
	if latest := e.when.Latest(last, after); !latest.IsZero() && e.shifted(latest).After(after) {
		if before := e.when.Latest(last, latest.Add(-time.Nanosecond)); !before.IsZero() {
			last = before
		}
	} else if !latest.IsZero() {
		last = latest
	}
	for at := e.after(last); !at.IsZero() && len(all) < n && e.step(); at = e.after(at) {
		all = append(all, e.shifted(at))
	}
	return all
}

// bounded reports whether an instant is within start and until.
func (e Entry) bounded(at time.Time) bool {
	return !at.Before(e.Ours.Start) && (e.Ours.Until.IsZero() || !at.After(e.Ours.Until))
}

// Between returns the instants in [from, to), with their jitter, at most limit of them,
// whether or not they were fired. more reports that there are more.
func (e Entry) Between(from, to time.Time, limit int) (all []time.Time, more bool) {
	e.begin(listSteps)
	begin := from.Add(-e.Ours.Jitter)
	last := begin.Add(-time.Microsecond)
	if i, ok := e.when.(Interval); ok {
		last = i.phase(e.anchor(begin), begin)
	}
	for at := e.when.Next(last); !at.IsZero() && at.Before(to) && e.step(); at = e.when.Next(at) {
		due := e.shifted(at)
		if due.Before(from) || !due.Before(to) || !e.bounded(at) {
			continue
		}
		if len(all) == limit {
			return all, true
		}
		all = append(all, due)
	}
	return all, false
}

// step counts an instant of a rule that needs no search.
func (e Entry) step() bool {
	e.work.search()
	return e.work.step()
}

// anchor returns an instant from which an interval is counted.
func (e Entry) anchor(preset time.Time) time.Time {
	switch {
	case !e.Ours.Start.IsZero():
		return e.Ours.Start
	case !e.Meta.LastRunAt.IsZero():
		return e.Meta.LastRunAt
	default:
		return preset
	}
}

// Score returns the score of an instant in the sorted set of the schedule: the
// instant rounded down, or -1 for never.
func Score(at time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return max(at.Unix(), 0)
}

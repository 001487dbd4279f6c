package recur

import (
	"hash/fnv"
	"time"
)

// Plan is what is to be done with an entry.
type Plan struct {
	// Due are the instants whose runs are to be fired now, oldest first.
	Due []time.Time
	// Last is what last_run_at becomes; zero: the entry is not due.
	Last time.Time
	// Next is when the entry is due, of one that is due now after Last; zero:
	// never.
	Next time.Time
}

// Plan says what is to be done with the entry at an instant of Redis's clock.
// With an [Entry.Err], what it says of the next instant is not known.
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

// first is the plan of an entry that never ran: it is due at once, unless it has
// a start or is of the kinds that are ours alone, which wait for their instant.
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

// over reports whether all runs have been.
func (e Entry) over() bool { return e.Ours.MaxRuns > 0 && e.Ours.Fired >= e.Ours.MaxRuns }

// limited cuts a plan to the runs that are left, and says what is next.
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

// after is the next instant without jitter, within start and until.
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

// latest is the last instant that is due; first is.
func (e Entry) latest(first, now time.Time) time.Time {
	bound := now
	if e.Ours.Until.After(first) && e.Ours.Until.Before(bound) {
		bound = e.Ours.Until
	}
	latest := e.when.Latest(first, bound)
	if latest.IsZero() {
		return first
	}
	if e.Ours.Jitter == 0 {
		return latest
	}
	// The jitter may put the last ones off.
	at := first
	from := since(e.when, first, bound, 2+int(e.Ours.Jitter/time.Second))
	if from.After(at) {
		at = from
	}
	for next := e.after(at); !next.IsZero() && !e.shifted(next).After(now) && e.step(); next = e.after(next) {
		at = next
	}
	return at
}

// missed are the instants that fire.
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

// shifted is an instant with its jitter, which is the same on every node.
func (e Entry) shifted(at time.Time) time.Time {
	if e.Ours.Jitter <= 0 || at.IsZero() {
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
	return at.Add(time.Duration(sum % uint64(e.Ours.Jitter)).Truncate(time.Microsecond))
}

// LastRun is the latest instant that was fired; zero: none, or none that is known.
func (e Entry) LastRun() time.Time {
	if e.Ours.LastRun.IsZero() && e.Meta.Runs > 0 {
		return e.Meta.LastRunAt
	}
	return e.Ours.LastRun
}

// Due is when the entry is due, in the past while it is overdue; zero: never. Of
// one that never ran it is not known.
func (e Entry) Due() time.Time {
	if !e.Enabled() || e.over() || e.Meta.LastRunAt.IsZero() {
		return time.Time{}
	}
	e.begin(planSteps)
	return e.shifted(e.after(e.Meta.LastRunAt))
}

// Skip has the entry go on as if the instants until now had been.
func (e *Entry) Skip(now time.Time) {
	e.begin(planSteps)
	if last := e.Meta.LastRunAt; !last.IsZero() {
		if latest := e.when.Latest(last, now); !latest.IsZero() {
			e.Meta.LastRunAt = latest
		}
	}
}

// Preview are the next n instants after one; what is overdue then is not among
// them.
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
	if latest := e.when.Latest(last, after); !latest.IsZero() {
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

// Between are the instants from one to before another, at most limit of them,
// whatever was fired; more says that there are more.
func (e Entry) Between(from, to time.Time, limit int) (all []time.Time, more bool) {
	e.begin(listSteps)
	last := from.Add(-time.Microsecond)
	if i, ok := e.when.(Interval); ok && !i.Relative {
		last = i.phase(e.anchor(from), from)
	}
	for at := e.when.Next(last); !at.IsZero() && at.Before(to) && e.step(); at = e.when.Next(at) {
		if at.Before(from) || !e.bounded(at) {
			continue
		}
		if len(all) == limit {
			return all, true
		}
		all = append(all, at)
	}
	return all, false
}

// step counts an instant; for the rules that are computed without a search.
func (e Entry) step() bool {
	e.work.search()
	return e.work.step()
}

// anchor is an instant that an interval has.
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

// phase is the last instant before one, given some instant.
func (i Interval) phase(anchor, before time.Time) time.Time {
	n := before.Sub(anchor) / i.Every
	at := anchor.Add(n * i.Every)
	for !at.Before(before) {
		at = at.Add(-i.Every)
	}
	return at
}

// Score is an instant as the schedule's set has it: never later than it, and
// -1 for never.
func Score(at time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return max(at.Unix(), 0)
}

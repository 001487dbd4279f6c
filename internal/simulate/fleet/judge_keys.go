package fleet

import (
	"maps"
	"slices"
	"time"
)

// judgeKeys checks the order of keys: while an earlier timer is due, leased or waits for its retry,
// no later one begins.
func (j *judge) judgeKeys() {
	if !j.plan.Keys {
		return
	}
	byKey := map[string][]*write{}
	for _, w := range j.record.writes {
		if w.key != "" && w.body != "" {
			name := topicOf(w.subject) + " " + w.key
			byKey[name] = append(byKey[name], w)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		j.judgeKey(key, byKey[key])
	}
}

func (j *judge) judgeKey(key string, writes []*write) {
	bodies := map[string]bool{}
	for _, w := range writes {
		bodies[w.body] = true
	}
	var runs []*run // in the order in which they began
	for _, r := range j.record.runs {
		if bodies[r.body] {
			runs = append(runs, r)
		}
	}
	for i, r := range runs {
		for _, next := range runs[i+1:] {
			if next.from.Before(j.over(r)) && next.subject != r.subject && !j.rewritten(r) && !j.lost(r.taken().Add(-leaseTTL), next.from) {
				j.breaks("one at a time by key", "%s %s begins at %v beside %s %s, %v to %v, of %s",
					next.subject, next.body, clock(next.from), r.subject, r.body, clock(r.from), clock(j.over(r)), key)
			}
		}
	}
	for _, a := range writes {
		acked := j.sole(a)
		if acked == nil {
			continue
		}
		for _, b := range writes {
			if b.result == done && !j.lost(a.to.Add(-leaseTTL), *acked) && b.until.After(a.until) && len(j.runs[b.body]) > 0 {
				first := j.runs[b.body][0]
				if first.from.Before(*acked) && a.to.Add(j.onItsWay(a.to, first.from)).Before(first.from) && !j.atEnd(a, first) {
					j.breaks("in order by key", "%s %s begins at %v, before %s %s of %s, which is due earlier, was acked at %v",
						b.subject, b.body, clock(first.from), a.subject, a.body, key, clock(*acked))
				}
			}
		}
	}
}

// atEnd reports whether a run was claimed over HTTP in the microsecond in which such a lease of a has
// expired. Only virtual time lets a node claim a and give it back within that microsecond; a is due
// one later then, so that the claim before cannot settle it, and the key is free until then. A node that
// has no more claims over HTTP may have extended the lease once, without the consumer's knowing.
func (j *judge) atEnd(a *write, claimed *run) bool {
	const verified = 100 * time.Millisecond // after the claim at the latest
	return slices.ContainsFunc(j.runs[a.body], func(r *run) bool {
		after := claimed.taken().Sub(r.expires)
		return !r.received.IsZero() && !claimed.received.IsZero() && after >= -2*time.Microsecond && after <= verified
	})
}

// onItsWay is how long before its handler began a timer may have been claimed.
func (j *judge) onItsWay(from, to time.Time) time.Duration {
	if j.disturbed(from, to) {
		return leaseTTL + settling
	}
	return settling
}

// rewritten reports whether a timer was cancelled or scheduled again while its handler ran, or its
// lease was on the way to it, which frees its key.
func (j *judge) rewritten(r *run) bool {
	return slices.ContainsFunc(j.record.writes, func(w *write) bool {
		return w.subject == r.subject && w.body != r.body && w.from.Before(r.end()) && !w.to.Add(leaseTTL).Before(r.from)
	})
}

// sole returns when a write was acked first; nil: it was not, or is not the only one of its id.
func (j *judge) sole(w *write) *time.Time {
	if w.result != done {
		return nil
	}
	for _, other := range j.record.writes {
		if idOf(w.subject) == "" {
			break // no other write is about it
		}
		if other != w && other.subject == w.subject && !other.to.Before(w.from) && other.from.Before(w.until.Add(patience)) {
			return nil
		}
		if other != w && other.subject == w.subject && other.result == unknown {
			return nil
		}
	}
	for _, r := range j.runs[w.body] {
		if r.acked {
			return &r.to
		}
	}
	return nil
}

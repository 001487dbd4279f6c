package fleet

import (
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// judgeJoins checks the timers that wait for others: none is due before the others have ended, or its
// instant has come, what their handlers read is true, and they do not wait for longer.
func (j *judge) judgeJoins() {
	for _, of := range j.record.joins {
		for _, r := range j.runs[of.write.body] {
			if !r.from.Before(of.limit) {
				continue
			}
			for _, p := range of.parts {
				if at := j.ended(p); at.IsZero() || at.After(r.from) {
					j.breaks("joins", "%s runs %s at %v, and %s has not ended", r.at, of.write.body, clock(r.from), p.body)
				}
			}
		}
		for _, read := range j.record.ends.all[of.write.body] {
			for i, end := range read.ends {
				if !j.truly(of, i, end, read.at) {
					j.breaks("joins", "%s reads at %v that %s is %q", of.write.body, clock(read.at), of.parts[i].body, end)
				}
			}
		}
		j.inTime(of)
	}
}

// ended returns when a part may have ended first; zero: it has not. Its node notes the end before the
// handler's verdict counts.
func (j *judge) ended(p *write) (first time.Time) {
	note := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, r := range j.runs[p.body] {
		if r.handled {
			note(r.to)
		}
	}
	for _, w := range j.record.writes {
		if w.subject == p.subject && w.body == "" && w.result != refused {
			note(w.from)
		}
	}
	return first
}

// truly reports whether a part may have ended so at an instant.
func (j *judge) truly(of *join, part int, end wakebelltype.End, at time.Time) bool {
	p := of.parts[part]
	switch end {
	case "":
		return !at.Before(of.limit)
	case wakebelltype.EndDone:
		for _, r := range j.runs[p.body] {
			if r.handled && !r.to.After(at) {
				return true
			}
		}
	case wakebelltype.EndCancelled:
		for _, w := range j.record.writes {
			if w.subject == p.subject && w.body == "" && w.result != refused && !w.from.After(at) {
				return true
			}
		}
	}
	return false
}

// soon is how long after the last end of a part its join begins, if nothing is wrong and no part was
// cancelled, which audits find later.
const soon = 2 * time.Second

// inTime checks that a join does not wait for longer than for its parts.
func (j *judge) inTime(of *join) {
	last := of.write.to
	for _, p := range of.parts {
		var acked time.Time
		for _, r := range j.runs[p.body] {
			if r.acked && acked.IsZero() {
				acked = r.to
			}
		}
		if acked.IsZero() {
			return
		}
		if acked.After(last) {
			last = acked
		}
		for _, w := range j.record.writes {
			if w.subject == p.subject && w.body == "" {
				return
			}
		}
	}
	if of.write.result != done || j.disturbed(of.write.from, last.Add(soon)) {
		return
	}
	if runs := j.runs[of.write.body]; len(runs) == 0 || runs[0].from.After(last.Add(soon)) {
		j.breaks("joins", "the parts of %s have ended by %v, and it does not begin in %v", of.write.body, clock(last), soon)
	}
}

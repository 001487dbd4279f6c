package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// join is a timer that waits for others.
type join struct {
	write *write
	parts []*write
	limit time.Time // when it is due at the latest
}

// joinIDs is what ids of timers that wait for others begin with.
const joinIDs = "join-"

// join schedules a timer that waits for three others, in one call, which is made again until it has
// an answer. One of the others may be cancelled later.
func (f *fleet) join(o Op) {
	c := f.clients[o.A%len(f.clients)]
	in := 5*time.Second + time.Duration(o.C)*time.Second
	w := f.writing(subjectOf(jobs, joinIDs+o.body()), o.body(), "", c.name(), 0)
	j := &join{write: w, limit: w.due.Add(in)}
	var drafts []wakebell.Draft
	var parts []wakebelltype.Part
	for i := range 3 {
		t := timer{topic: topics[(o.B+i)%len(topics)], id: fmt.Sprintf("part-%d-%d", o.Number, i), body: fmt.Sprintf("%s-part-%d", o.body(), i)}
		t.in = delays[(o.A+i*o.B)%8]
		j.parts = append(j.parts, f.writing(subjectOf(t.topic, t.id), t.body, "", c.name(), t.in))
		parts = append(parts, wakebelltype.Part{Topic: t.topic, ID: t.id})
		drafts = append(drafts, t.draft())
	}
	drafts = append(drafts, wakebell.NewTopic[string](jobs).Draft(w.body, wakebell.ID(idOf(w.subject)), wakebell.In(in), wakebell.After(parts...)))
	f.record.mu.Lock()
	f.record.joins = append(f.record.joins, j)
	f.record.mu.Unlock()
	all, lives, err := f.scheduleJoin(c, o.body(), drafts)
	for i, p := range append(j.parts[:len(j.parts):len(j.parts)], w) {
		p.single = true
		a := answer{}
		if err == nil {
			a.due = all[i].Due
		}
		f.wrote(p, a, err, lives)
	}
	if o.C%4 == 0 && err == nil {
		<-time.After(time.Duration(o.B) * 50 * time.Millisecond)
		f.cancelPart(o, j.parts[0].subject)
	}
}

// joinAndRepeat schedules a timer that waits for others, another one with its id and other parts, and
// makes the first call once more, as a program does that has not seen its answer: that changes nothing.
func (f *fleet) joinAndRepeat(o Op) {
	c := f.clients[o.A%len(f.clients)]
	later, soon := []time.Duration{time.Minute, 5 * time.Minute}, []time.Duration{2 * time.Second, 5 * time.Minute}
	first := f.partsAndJoin(c, o, o.body()+"-first", later)
	if !f.make(c, first, nil) {
		return
	}
	second := f.partsAndJoin(c, o, o.body(), soon)
	of := &join{write: second.writes[2], parts: second.writes[:2], limit: second.writes[2].due.Add(soon[1])}
	f.record.mu.Lock()
	f.record.joins = append(f.record.joins, of)
	f.record.mu.Unlock()
	if f.make(c, second, second.writes[2]) {
		_, _, err := f.scheduleJoin(c, first.key, first.drafts)
		f.trace("%s repeats the call for %s: %v", c.name(), first.key, err)
	}
}

// joinCall is a call that schedules two timers and a third one, which waits for them.
type joinCall struct {
	key    string // of its idempotency
	drafts []wakebell.Draft
	writes []*write
}

// partsAndJoin returns such a call. The parts are due after the first delay, the third at the second.
func (f *fleet) partsAndJoin(c *client, o Op, body string, in []time.Duration) joinCall {
	call := joinCall{key: body}
	var parts []wakebelltype.Part
	for i := range 2 {
		t := timer{topic: topics[(o.B+i)%len(topics)], id: fmt.Sprintf("part-%s-%d", body, i), body: fmt.Sprintf("%s-part-%d", body, i), in: in[0]}
		call.writes = append(call.writes, f.writing(subjectOf(t.topic, t.id), t.body, "", c.name(), t.in))
		call.drafts = append(call.drafts, t.draft())
		parts = append(parts, wakebelltype.Part{Topic: t.topic, ID: t.id})
	}
	w := f.writing(subjectOf(jobs, joinIDs+o.body()), body, "", c.name(), 0)
	d := wakebell.NewTopic[string](jobs).Draft(body, wakebell.ID(idOf(w.subject)), wakebell.In(in[1]), wakebell.After(parts...))
	call.writes, call.drafts = append(call.writes, w), append(call.drafts, d)
	return call
}

// make makes a call, and reports whether it is done. replaces is the write that may find a pending
// timer, nil: none.
func (f *fleet) make(c *client, call joinCall, replaces *write) bool {
	all, lives, err := f.scheduleJoin(c, call.key, call.drafts)
	for i, w := range call.writes {
		w.single = true
		a := answer{}
		if err == nil {
			a = answer{due: all[i].Due, pending: w == replaces && all[i].Outcome == wakebelltype.OutcomeReplaced}
		}
		f.wrote(w, a, err, lives)
	}
	return err == nil
}

// scheduleJoin makes a call again until it has an answer. lives reports whether it has been without effect
// if it failed.
func (f *fleet) scheduleJoin(c *client, key string, drafts []wakebell.Draft) (all []wakebelltype.Scheduled, lives bool, err error) {
	err, lives = fmt.Errorf("no session: %w", wakebell.ErrUnavailable), true
	for limit := time.Now().Add(50 * time.Second); time.Now().Before(limit) && f.ctx.Err() == nil; <-time.After(time.Second) {
		s := c.running()
		if s == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
		all, err = s.remote.Schedule(remote.WithKey(ctx, key), drafts...)
		cancel()
		if err == nil {
			return all, true, nil
		}
		lives = lives && outcomeOf(err) == refused
	}
	return nil, lives, err
}

// cancelPart cancels a timer for which another one waits.
func (f *fleet) cancelPart(o Op, subject string) {
	n := f.nodes[o.A%len(f.nodes)]
	run := n.running()
	if run == nil {
		return
	}
	w := f.writing(subject, "", "", n.name(), 0)
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	a, err := timers{run.sys.Client()}.cancel(ctx, topicOf(subject), idOf(subject))
	f.wrote(w, a, err, n.running() == run)
}

// partsOf reads how the parts of a join have ended, in its handler; nil: the timer has no join.
func partsOf(ctx context.Context, t wakebell.Timer[string]) (ends []wakebelltype.End, err error) {
	if !strings.HasPrefix(t.ID, joinIDs) {
		return nil, nil
	}
	for part, err := range t.Parts(ctx) {
		if err != nil {
			return nil, err
		}
		ends = append(ends, part.End)
	}
	return ends, nil
}

// readEnds are those that handlers of joins have read, by the body of the join.
type readEnds struct {
	mu  sync.Mutex
	all map[string][]read
}

// read is what a handler of a join has read.
type read struct {
	at   time.Time
	ends []wakebelltype.End
}

func (e *readEnds) note(body string, of []wakebelltype.End) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string][]read{}
	}
	e.all[body] = append(e.all[body], read{time.Now(), of})
}

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
				acked = r.settled()
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

package simulate

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/wakebelltype"
)

// adopted notes that parts which were scheduled before have the header of a join. A node that
// has one already does not see it. Current reports whether the timer still has that join.
func (w *workflow) adopted(j *join, current bool, parts []wakebelltype.Part) {
	s := w.sim
	for _, p := range parts {
		v := w.timers[p.ID]
		if v == nil {
			continue
		}
		t, err := w.store.Get(s.ctx, p.Topic, p.ID)
		if err != nil {
			s.broken("errors", "get %s: %v", p.ID, err)
		}
		env, err := envelope.Decode(t.Payload)
		if err != nil || string(env.Body) != body(p.ID) {
			s.broken("payloads", "%s has the payload %q: %v", p.ID, t.Payload, err)
		}
		if v.payload != string(t.Payload) && v.token != "" {
			w.loose[p.ID] = true
		}
		if refs := joins.RefsOf(env.Headers); current && !slices.Contains(refs, j.Ref) && len(refs) < 16 {
			s.broken("joins", "%s is a part of %s, and does not say so: %v", p.ID, j.ID, refs)
		}
		if current && slices.Contains(j.parts, p.ID) {
			j.told[p.ID] = true
		}
		v.payload = string(t.Payload)
	}
	if !current {
		return
	}
	w.look(j, func(e *joins.End) bool {
		truth := w.ended[e.ID]
		left := w.gives[e.ID] != "" && w.sim.now().Sub(truth.at) < resultLife
		return e.End == wakebelltype.EndMissing && w.timers[e.ID] == nil && truth.how != wakebelltype.EndDead && !left
	})
}

// lookAtAll looks at all joins.
func (w *workflow) lookAtAll() {
	for _, id := range slices.Sorted(maps.Keys(w.joins)) {
		w.look(w.joins[id], nil)
	}
}

// look reads how the parts of a join have ended. What is new must be true, or be allowed by also.
func (w *workflow) look(j *join, also func(*joins.End) bool) {
	s := w.sim
	page, err := w.api.Page(s.ctx, j.Ref, 0, 1000, false)
	switch {
	case errors.Is(err, wakebelltype.ErrNotFound) && w.over(j):
		return
	case err != nil:
		s.broken("errors", "parts of %s: %v", j.ID, err)
	case len(page.Ends) != len(j.parts):
		s.broken("joins", "the join of %s has %d parts, expected %q", j.ID, len(page.Ends), j.parts)
	}
	for i := range page.Ends {
		e := &page.Ends[i]
		switch was, known := j.ends[e.ID]; {
		case e.End == was && e.ID == j.parts[i]:
		case e.ID != j.parts[i]:
			s.broken("joins", "the part %d of %s is %s, expected %s", i, j.ID, e.ID, j.parts[i])
		case known:
			s.broken("joins", "the part %s of %s was %q, and is %q", e.ID, j.ID, was, e.End)
		case !w.truly(j, e) && (also == nil || !also(e)):
			s.broken("joins", "the part %s of %s is %q; it has ended with %q, exists: %t", e.ID, j.ID, e.End, w.ended[e.ID].how, w.timers[e.ID] != nil)
		default:
			s.note("%s of %s: %s", e.ID, j.ID, e.End)
			j.ends[e.ID] = e.End
		}
	}
	if v := j.timer; j.complete() && !j.ran && !w.over(j) && !v.leased(w.sim.now()) && v.due.After(w.sim.now()) {
		v.due = w.sim.now()
		s.clients[0].hint(exchange.Hint{Kind: exchange.HintDue, Sent: v.due})
	}
}

// truly reports whether a part that no node has noted has ended so. Cancelled is also one that
// was never scheduled, because its client has died, or whose node did not know that it was a
// part, or whose note Redis has lost, unless it left a result. One that was cancelled after its handler had succeeded may be
// done.
func (w *workflow) truly(j *join, e *joins.End) bool {
	switch truth := w.ended[e.ID]; {
	case w.timers[e.ID] != nil:
		return false
	case e.End == truth.how:
		return true
	case e.End == wakebelltype.EndDone:
		return truth.how == wakebelltype.EndCancelled && w.gives[e.ID] != ""
	case e.End == wakebelltype.EndCancelled:
		left := w.gives[e.ID] != "" && truth.at.After(j.added[e.ID])
		return truth.how == "" || w.loose[e.ID] || (!j.told[e.ID] || w.lost[e.ID]) && !left
	default:
		return false
	}
}

// certainly makes a call after which the timer of a join is due if all parts have ended by it.
func (w *workflow) certainly(j *join, call func()) {
	before := j.complete()
	if call(); before || !j.complete() {
		return
	}
	if j.ran = true; w.over(j) {
		return
	}
	s := w.sim
	t, err := w.store.Get(s.ctx, j.Topic, j.ID)
	switch {
	case err != nil:
		s.broken("errors", "get %s: %v", j.ID, err)
	case !t.Running && t.Due.After(w.sim.now().Add(grain)):
		s.broken("joins", "all parts of %s have ended, and it is due in %v", j.ID, t.Due.Sub(s.now()))
	}
}

// closes notes that a join is closed.
func (w *workflow) closes(j *join) {
	w.certainly(j, func() { j.open, j.closed = false, w.sim.now(); w.look(j, nil) })
}

// close closes a join.
func (w *workflow) close(o Op) {
	j := w.pick(o)
	if j == nil {
		return
	}
	w.steps("close "+j.ID, func() bool {
		j = w.of(j.ID) // it may be another one by now
		err := w.api.Close(w.sim.ctx, joins.Ref{Topic: j.Topic, ID: j.ID})
		switch {
		case errors.Is(err, wakebelltype.ErrNotFound) && w.over(j):
		case err != nil:
			w.sim.broken("errors", "close %s: %v", j.ID, err)
		default:
			w.closes(j)
		}
		return true
	})
}

// cancelJoin cancels a join with its parts that have not ended.
func (w *workflow) cancelJoin(o Op) {
	j, s := w.pick(o), w.sim
	if j == nil {
		return
	}
	w.steps("cancel the join of "+j.ID, func() bool {
		j = w.of(j.ID)
		var pending []string
		for _, id := range j.parts {
			if _, noted := j.ends[id]; !noted && w.timers[id] != nil {
				pending = append(pending, id)
			}
		}
		_, n, err := w.api.Cancel(s.ctx, joins.Ref{Topic: j.Topic, ID: j.ID}, nil)
		switch {
		case errors.Is(err, wakebelltype.ErrNotFound) && w.over(j):
			return true
		case err != nil:
			s.broken("errors", "cancel the join of %s: %v", j.ID, err)
		case int(n) != len(pending):
			s.broken("answers", "%d parts of %s are cancelled, expected %q", n, j.ID, pending)
		}
		for _, id := range append(pending, j.ID) {
			w.cancelled(id)
		}
		w.look(j, nil)
		return true
	})
}

func (w *workflow) cancelled(id string) {
	if w.timers[id] != nil {
		delete(w.timers, id)
		w.ended[id] = ended{wakebelltype.EndCancelled, w.sim.now()}
	}
}

// cancelPart cancels a timer that may be a part.
func (w *workflow) cancelPart(o Op) {
	for _, p := range w.some(1, o.A, "") {
		w.steps("cancel "+p.ID, func() bool {
			found, err := w.store.Cancel(w.sim.ctx, p.Topic, p.ID)
			switch {
			case err != nil:
				w.sim.broken("errors", "cancel %s: %v", p.ID, err)
			case (found[0] == wakebelltype.PresenceAbsent) != (w.timers[p.ID] == nil):
				w.sim.broken("answers", "cancel of %s: %v", p.ID, found[0])
			}
			w.cancelled(p.ID)
			return true
		})
	}
}

// read compares the counts of a join.
func (w *workflow) read(o Op) {
	j, counts := w.pick(o), map[wakebelltype.End]int64{}
	if j == nil {
		return
	}
	w.look(j, nil)
	_, is, err := w.api.Head(w.sim.ctx, j.Ref)
	if errors.Is(err, wakebelltype.ErrNotFound) && w.over(j) {
		return
	}
	for _, how := range j.ends {
		counts[how]++
	}
	want := wakebelltype.Join{
		Open: j.open, Parts: int64(len(j.parts)), Done: counts[wakebelltype.EndDone], Dead: counts[wakebelltype.EndDead],
		Cancelled: counts[wakebelltype.EndCancelled], Missing: counts[wakebelltype.EndMissing],
	}
	if err != nil || is != want {
		w.sim.broken("joins", "the join of %s is %+v, %v; expected %+v", j.ID, is, err, want)
	}
}

// exchanged notes how timers end.
func (w *workflow) exchanged(r *exchange.Request, reply *exchange.Reply) {
	before, ends := map[string]*version{}, map[string]wakebelltype.End{}
	for _, settled := range r.Settle {
		before[settled.ID], ends[settled.ID] = w.timers[settled.ID], wakebelltype.EndDead
		if settled.Verdict == exchange.Ack {
			ends[settled.ID] = wakebelltype.EndDone
		}
	}
	for _, dead := range reply.DeadLettered {
		if _, settled := ends[dead.ID]; !settled {
			before[dead.ID], ends[dead.ID] = w.timers[dead.ID], wakebelltype.EndDead
		}
	}
	for i := range reply.Leases {
		w.inTime(reply.Leases[i].ID)
		delete(w.lost, reply.Leases[i].ID)
	}
	w.side.exchanged(r, reply)
	for id, v := range before {
		if v == nil || w.timers[id] != nil {
			continue
		}
		w.ended[id] = ended{ends[id], w.sim.now()}
		if ends[id] == wakebelltype.EndDone && w.topics[id] == tasks {
			w.resultOf(id)
		}
	}
}

// resultOf checks that the result of a timer is that of the run whose ack was accepted.
func (w *workflow) resultOf(id string) {
	s := w.sim
	names, err := w.store.Recent(s.ctx, tasks, id)
	var kept progress.Kept
	if err == nil {
		kept, err = w.kept.Read(s.ctx, names, id)
	}
	if _, given := w.gives[id]; err == nil && !given && kept.Result == nil && s.writes > 0 {
		return // Redis has lost it
	}
	if err != nil || kept.Result == nil || string(kept.Result.Payload) != w.gives[id] {
		s.broken("results", "%s has the result %+v, %v; expected %q", id, kept.Result, err, w.gives[id])
	}
}

// audited is how late the last audit of a join notes the end of a part.
const audited = 12 * time.Minute

// inTime checks, when the timer of a join is claimed first, that it was not due much earlier:
// when all parts have ended.
func (w *workflow) inTime(id string) {
	s, j := w.sim, w.joins[id]
	if j == nil || w.over(j) || j.timer.claimed {
		return
	}
	j.timer.claimed = true
	s.result.Joined++
	if s.resting.IsZero() || j.open || w.target != 0 {
		return
	}
	last := s.resting
	if j.closed.After(last) {
		last = j.closed
	}
	for _, part := range j.parts {
		end, over := w.ended[part]
		if !over { // or it was never scheduled
			return
		}
		if end.at.After(last) {
			last = end.at
		}
	}
	most := audited + s.setBackBy()
	if s.plan.Shape == Days {
		most += 2*seldom*idle + s.plan.Settings.MaxPollingInterval
	}
	if late := w.sim.now().Sub(last); late > most {
		s.broken("joins", "all parts of %s have ended %v ago", id, late)
	}
}

// begins checks that a handler may begin.
func (w *workflow) begins(_ *poller, l *leasing.Lease, _ *run) {
	if w.leases[l.ID+" "+string(l.Token)] == nil {
		w.sim.broken("fence", "%s begins without a lease", l.ID)
	}
	if j := w.joins[l.ID]; j != nil && !w.over(j) {
		w.look(j, nil)
	}
}

// left returns how much has not ended.
func (w *workflow) left() int {
	if w == nil {
		return 0
	}
	audits, err := w.sim.rdb.ZCard(w.sim.ctx, "timers_joins").Result()
	if err != nil {
		w.sim.broken("errors", "joins: %v", err)
	}
	return len(w.timers) + int(audits) + w.target
}

// atRest checks that nothing waits, and that no join is audited for ever.
func (w *workflow) atRest() {
	if w == nil {
		return
	}
	if n := w.left(); n > 0 {
		w.sim.broken("delivered", "%d timers, parts and joins wait for ever: %v", n, slices.Sorted(maps.Keys(w.timers)))
	}
}

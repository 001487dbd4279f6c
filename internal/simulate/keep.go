package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/wakebelltype"
)

// keeping is what handlers do in a quarter of the plans, beside ending: they replace the
// payloads of their timers while they run, and snooze.
type keeping struct {
	Checkpoints float64 // the share of runs that make one
	Snoozes     float64 // the share of runs that end with one
}

// keepingOf are what the handlers of a seed do. The seeds without are those of the mutants'
// table.
func keepingOf(seed uint64) keeping {
	if seed%4 != 3 {
		return keeping{}
	}
	return keeping{Checkpoints: 0.3, Snoozes: 0.2}
}

// keeps reports whether the judge follows the timers of a poller: messages of queues have no
// checkpoints, and a topic that moves has a judge of its own.
func (p *poller) keeps() bool { return p.account == account(p.sim.judge) }

// checkpoints has a handler replace the payload of its timer while it runs.
func (p *poller) checkpoints(l *leasing.Lease, r *run, takes time.Duration) {
	s := p.sim
	if share := s.plan.Keeping.Checkpoints; share == 0 || !p.keeps() || !s.chance(share) {
		return
	}
	p.later(s.between(0, takes+1), func() {
		if r.cause != nil || s.cut() {
			return
		}
		token := l.Token
		s.after(s.transit(), func() { p.checkpoint(l.ID, token) })
	})
}

// checkpoint arrives in Redis.
func (p *poller) checkpoint(id string, token exchange.Token) {
	s, payload := p.sim, p.sim.judge.payload()
	held, err := progress.New(p.store.Timers()).Checkpoint(s.ctx, p.name, id, token, payload)
	if err != nil {
		s.broken("errors", "a checkpoint of %s: %v", id, err)
	}
	s.note("%s makes a checkpoint of %s: %t", p.node.name, id, held)
	s.judge.checkpointed(id, token, string(payload), held)
}

// checkpointed checks that the holder of a lease, and no other one, has replaced a payload.
func (j *judge) checkpointed(id string, token exchange.Token, payload string, held bool) {
	v := j.of(id, token)
	switch {
	case held && v == nil:
		j.sim.broken("fence", "a checkpoint of %s counts, and its lease is void", id)
	case !held && v != nil && v.counts(j.sim.now()):
		j.sim.broken("checkpoints", "a checkpoint of %s is refused, and its lease is valid", id)
	case held:
		v.payload = payload
	}
}

// snooze returns the outcome of a handler that snoozes; false: it does not. While nothing goes
// wrong none does: others of its key would wait for longer than the judge allows.
func (p *poller) snooze() (leasing.Outcome, bool) {
	s := p.sim
	if share := s.plan.Keeping.Snoozes; share == 0 || !p.keeps() || !s.faulty || !s.chance(share) {
		return leasing.Outcome{}, false
	}
	return leasing.Outcome{Kind: leasing.Snoozed, Delay: s.between(time.Millisecond, 5*time.Second), Reason: "not yet"}, true
}

// failures are how many a timer has, as far as the judge knows.
type failures struct{ least, most int }

func (f *failures) nack(s *exchange.Settlement) {
	if !s.Snoozed {
		f.least, f.most = f.least+1, f.most+1
	}
}

// counts checks the failures with which a timer is delivered: snoozes are none.
func (j *judge) counts(v *version, l *exchange.Lease) {
	if f := v.failures; l.Failures < f.least || l.Failures > f.most {
		j.sim.broken("snoozes", "%s is delivered with %d failures (claims %d), expected %d to %d", l.ID, l.Failures, l.Claims, f.least, f.most)
	}
	v.failures = failures{least: l.Failures, most: l.Failures}
}

// ask has a request of a process reach Redis, and tells the process later whether the answer came.
func (p *poller) ask(request func(), answered func(came bool)) {
	s := p.sim
	s.after(s.transit(), func() {
		lost := s.cut()
		if !lost {
			request()
			lost = s.cut()
		}
		if lost {
			p.later(s.plan.Timeout, func() { answered(false) })
		} else {
			p.later(s.transit(), func() { answered(true) })
		}
	})
}

// finish has a node settle a timer of a workflow: after it has stored the result, and noted the
// end at the joins of which the timer is a part, as keeper.Part.Ended does.
func (w *workflow) finish(p *poller, l *leasing.Lease, r *run, o leasing.Outcome) {
	end, ends := keeper.EndOf(o, l.Failures+1 >= w.sim.plan.Settings.Retry.MaxFailures && r.cause == nil)
	end.Part = wakebelltype.Part{Topic: sharding.Topic(p.name), ID: l.ID}
	env, err := envelope.Decode(l.Payload)
	if err != nil {
		w.sim.broken("payloads", "%s has the payload %q: %v", l.ID, l.Payload, err)
	}
	note := func() {
		if refs := joins.RefsOf(env.Headers); ends && refs != nil {
			w.note(p, l, refs, end, o, 3)
		} else {
			p.event(func(c *leasing.Core) { c.Finished(time.Now(), l, o) })
		}
	}
	if o.Kind != leasing.Succeeded || end.Topic != tasks {
		note()
		return
	}
	refused := func() { // its handler returns the error
		o, ends = leasing.Outcome{Kind: leasing.Failed, Reason: "no result"}, false
		note()
	}
	token, lost := p.core.Held(l)
	if lost != nil {
		refused()
		return
	}
	end.Result = &progress.Result{Attempt: l.Claims, Activation: l.Activation, Payload: fmt.Appendf(nil, "run %d of %s", l.Claims, l.ID)}
	held := false
	p.ask(func() { held = w.give(p, l.ID, token, end.Result) }, func(came bool) {
		if !came || !held {
			refused()
			return
		}
		note()
	})
}

// resultLife is for how long results stay.
const resultLife = 24 * time.Hour

// give stores the result of a run, if that has the lease.
func (w *workflow) give(p *poller, id string, token exchange.Token, r *progress.Result) bool {
	held, err := w.kept.KeepResult(w.sim.ctx, p.name, id, token, *r, resultLife)
	v := w.leases[id+" "+string(token)]
	if has := v != nil && w.timers[id] == v && v.token == token; err != nil || held != has {
		w.sim.broken("fence", "a result of %s counts: %t, %v; its lease is valid: %t", id, held, err, has)
	}
	if held {
		w.gives[id] = string(r.Payload)
	}
	return held
}

// note notes the end of a part in two calls, so that the timer may be cancelled between them, and
// settles it.
func (w *workflow) note(p *poller, l *leasing.Lease, refs []joins.Ref, end joins.End, o leasing.Outcome, tries int) {
	unnoted := func() { // as in finished of the library
		o = leasing.Outcome{Kind: leasing.Crashed, Reason: "no note"}
		if l.Run.Cause() != nil {
			o.Kind = leasing.Released
		}
		p.event(func(c *leasing.Core) { c.Finished(time.Now(), l, o) })
	}
	again := func() {
		if tries == 0 {
			unnoted()
			return
		}
		w.note(p, l, refs, end, o, tries-1)
	}
	token, lost := p.core.Concludes(l)
	if lost != nil { // the outcome does not count
		p.event(func(c *leasing.Core) { c.Finished(time.Now(), l, o) })
		return
	}
	held := false
	p.ask(func() {
		var err error
		if held, err = w.kept.Holds(w.sim.ctx, p.name, l.ID, token); err != nil {
			w.sim.broken("errors", "the lease of %s: %v", l.ID, err)
		}
	}, func(came bool) {
		switch {
		case !came:
			again()
		case !held && l.Run.Cause() != nil:
			unnoted()
		case !held: // an extension is on its way, or the lease is lost
			p.later(100*time.Millisecond, func() { w.note(p, l, refs, end, o, tries) })
		default:
			p.ask(func() {
				w.sim.loseNext()
				w.noted(p.node, refs, end)
			}, func(came bool) {
				if !came {
					again()
					return
				}
				p.event(func(c *leasing.Core) { c.Finished(time.Now(), l, o) })
			})
		}
	})
}

// noted has the note of a node arrive at joins. The node may die between two commands. A join
// that was replaced, and is made again by a repeated call, lacks parts that were added to the
// first one.
func (w *workflow) noted(n *node, refs []joins.Ref, end joins.End) {
	s := w.sim
	w.life.begin(immortal)
	if s.faulty && s.chance(0.1) {
		w.life.begin(1 + s.random.IntN(4))
	}
	for _, r := range refs {
		j := w.joins[r.ID]
		if j == nil || j.Ref != r { // there is another join of that timer by now
			j = nil
		}
		var err error
		note := func() {
			if err = w.notes.Note(s.ctx, r, end); j != nil {
				w.look(j, func(e *joins.End) bool { return e.ID == end.ID && e.End == end.End })
			}
		}
		if j != nil && !w.life.mortal() {
			w.certainly(j, note)
		} else {
			note()
		}
		switch {
		case errors.Is(err, errDied):
			n.crash(time.Second)
			return
		case err != nil:
			s.broken("errors", "a note of %s: %v", end.ID, err)
		case j != nil && !w.over(j) && j.ends[end.ID] == "" && slices.Contains(j.parts, end.ID):
			s.broken("joins", "the end of %s was noted, and %s does not have it", end.ID, j.ID)
		}
	}
}

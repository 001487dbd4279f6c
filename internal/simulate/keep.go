package simulate

import (
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/progress"
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
	case !held && v != nil && v.leased():
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

// Settled takes back what the nacks of snoozed timers have counted, as a System does.
func (p *poller) Settled(f *leasing.Flight) {
	var snoozed []exchange.Lease
	for i := range f.Settling {
		if v := &f.Settling[i]; v.Snoozed && !v.Lease.Refused() {
			snoozed = append(snoozed, *v.Lease.Lease)
		}
	}
	if len(snoozed) == 0 || p.sim.cut() {
		return
	}
	p.sim.after(p.sim.transit(), func() {
		if err := p.timers.Uncount(p.sim.ctx, snoozed); err != nil {
			p.sim.broken("errors", "the end of a snooze: %v", err)
		}
		for i := range snoozed {
			p.sim.judge.uncounted(&snoozed[i])
		}
	})
}

// failures are how many a timer has, as far as the judge knows: a snooze counts as a failure
// until it is taken back, and whether that came too late, only Redis knows.
type failures struct {
	least, most int
	nacked      exchange.Token // of the last lease, if that ended with a nack
}

func (f *failures) nack(token exchange.Token) {
	f.least, f.most, f.nacked = f.least+1, f.most+1, token
}

// uncounted notes that a snooze was taken back.
func (j *judge) uncounted(l *exchange.Lease) {
	v := j.current[l.ID]
	if v == nil {
		return
	}
	v.failures.least = max(v.failures.least-1, 0)
	if v.failures.nacked == l.Token {
		v.failures.most = max(v.failures.most-1, 0)
	}
}

// counts checks the failures with which a timer is delivered: snoozes are none.
func (j *judge) counts(v *version, l *exchange.Lease) {
	if f := v.failures; l.Failures < f.least || l.Failures > f.most {
		j.sim.broken("snoozes", "%s is delivered with %d failures (claims %d), expected %d to %d", l.ID, l.Failures, l.Claims, f.least, f.most)
	}
	v.failures = failures{least: l.Failures, most: l.Failures}
}

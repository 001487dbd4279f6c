package simulate

import (
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages/exchange"
)

// starts checks that claims keep to the rates with which the run has begun: in every span, a
// bucket never gives more tokens than it has.
type starts struct {
	sim   *sim
	flow  exchange.Flow
	fixed func() bool        // these limits hold
	of    map[string]*bucket // by key; "" is that of the topic
}

type bucket struct {
	level float64
	at    time.Time
	burst int
	step  time.Duration // after which a token returns
}

func newStarts(s *sim, flow exchange.Flow, fixed func() bool) *starts {
	return &starts{sim: s, flow: flow, fixed: fixed, of: map[string]*bucket{}}
}

// takeOver takes the tokens away that have been used elsewhere.
func (s *starts) takeOver(from *starts) {
	for name := range from.of {
		b := s.bucket(name)
		b.level = min(b.level, from.bucket(name).level)
	}
}

// claimed takes the tokens of a claim.
func (s *starts) claimed(v *version) {
	v.charges = map[string]time.Time{}
	for _, name := range s.names(v) {
		b := s.bucket(name)
		if b.level--; b.level < -1e-3 && s.fixed() {
			s.sim.broken("rate", "%s is claimed, and the bucket %q lacks %.3f tokens", v.id, name, -b.level)
		}
		v.charges[name] = s.sim.now().Add(time.Duration((float64(b.burst) - b.level) * float64(b.step)))
	}
}

// released gives back what has not returned of the tokens of a claim that did not count.
func (s *starts) released(v *version) {
	for name, back := range v.charges {
		b := s.bucket(name)
		b.level += min(max(float64(back.Sub(s.sim.now()))/float64(b.step), 0), 1)
	}
}

// setBack notes that the clock was set back: tokens return from now on.
func (s *starts) setBack(by time.Duration) {
	for _, b := range s.of {
		b.at = b.at.Add(-by)
	}
}

// names returns the buckets of a timer.
func (s *starts) names(v *version) (names []string) {
	flow := s.flow
	if flow.RateLimit > 0 {
		names = append(names, "")
	}
	if flow.KeyRateLimit > 0 && v.key != "" {
		names = append(names, v.key)
	}
	return names
}

// bucket returns a bucket as it is now.
func (s *starts) bucket(name string) *bucket {
	flow, now := s.flow, inMicros(s.sim.now()) // by the clock of Redis
	limit, per, burst := flow.RateLimit, flow.RatePer, flow.RateBurst
	if name != "" {
		limit, per, burst = flow.KeyRateLimit, flow.KeyRatePer, flow.KeyRateBurst
	}
	b := s.of[name]
	if b == nil {
		b = &bucket{float64(burst), now, burst, per / time.Duration(limit)}
		s.of[name] = b
	}
	b.level = min(b.level+now.Sub(b.at).Seconds()*float64(limit)/per.Seconds(), float64(burst))
	b.at = now
	return b
}

// limits checks a claim against the limits with which the run has begun, while they hold: also
// while timers move to other shards.
func (j *judge) limits(v *version) {
	flow := j.sim.plan.Settings.Flow
	if j.tuned {
		return
	}
	running, ofKey := 1, 1
	for other := range j.running {
		if !other.leased(j.sim.now()) {
			delete(j.running, other)
			continue
		}
		if other != v {
			running++
			if other.key == v.key && v.key != "" && (j.sim.plan.KeyRun == 0 || other.run != v.run) {
				ofKey++
			}
		}
	}
	if flow.MaxInFlight > 0 && running > flow.MaxInFlight {
		j.sim.broken("limit", "%s is the %d. lease at once", v.id, running)
	}
	if flow.PerKey > 0 && ofKey > flow.PerKey {
		j.sim.broken("key", "%s is the %d. lease of %s at once", v.id, ofKey, v.key)
	}
}

// begins checks that a handler may begin.
func (j *judge) begins(p *poller, l *leasing.Lease, r *run) {
	j.sim.result.Delivered++
	own := l.ID + " " + string(l.Token)
	v := j.leases[own]
	if v == nil {
		j.sim.broken("fence", "%s begins without a lease", l.ID)
	}
	if v.early(j.sim.now()) && v == j.current[l.ID] && v.token == l.Token && !j.overtaken[own] {
		j.sim.broken("never early", "%s begins %v early", l.ID, v.due.Sub(j.sim.now()))
	}
	if j.stalled || r.cause != nil || j.overtaken[own] {
		return
	}
	for _, n := range j.sim.nodes {
		for _, other := range n.pollers {
			for _, running := range other.handling {
				o, lease := running.Run.(*run), running.ID+" "+string(running.Token)
				if running == l || j.voided[lease] || j.overtaken[lease] || o.cause != nil || !o.expires.After(time.Now()) {
					continue
				}
				if running.ID == l.ID && j.leases[lease] == v {
					j.sim.broken("exclusion", "%s begins on %s and runs on %s", l.ID, p.node.name, n.name)
				}
				j.beside(v, j.leases[lease])
			}
		}
	}
}

// beside checks that no handler of a timer begins beside that of another with its key, where one may
// run at a time.
func (j *judge) beside(v, other *version) {
	flow := j.sim.plan.Settings.Flow
	if j.tuned || flow.PerKey != 1 || v.key == "" || other == nil || other == v || other.key != v.key {
		return
	}
	if j.current[v.id] == v && j.current[other.id] == other && v.counts(j.sim.now()) && other.counts(j.sim.now()) {
		j.sim.broken("key", "%s begins while %s of its key runs", v.id, other.id)
	}
}

// inOrder checks that no timer of the key should have been claimed before v. A timer that was
// claimed already keeps its turn, and one that waits for a token of its key does. One that was due before
// the clock was set back may have been woken at an instant that comes again.
func (j *judge) inOrder(v *version) {
	flow := j.sim.plan.Settings.Flow
	if !j.fixed || flow.PerKey != 1 || flow.KeyRateLimit > 0 || v.key == "" || v.claimed {
		return
	}
	for _, other := range j.ofKey[v.key] {
		if other != v && !other.leased(j.sim.now()) && !other.ripe.Equal(other.due) && other.instant.Before(v.instant.Add(-grain)) {
			j.sim.broken("order", "%s of %s, for %v, overtakes %s, for %v", v.id, v.key, v.instant.Sub(j.sim.begin), other.id, other.instant.Sub(j.sim.begin))
		}
	}
}

// keyRun is how many timers of a key the node leases at once: every other node has no key runs, and
// takes what is left of those of the others.
func (n *node) keyRun() int { return n.sim.plan.KeyRun * ((n.number + 1) % 2) }

// restInOrder checks that of a key run whose leases have expired no timer is claimed again before an
// earlier one.
func (j *judge) restInOrder(v *version) {
	now := j.sim.now()
	if j.sim.plan.KeyRun == 0 || !j.fixed || v.key == "" || v.token == "" {
		return
	}
	for _, other := range j.ofKey[v.key] {
		if other != v && other.token != "" && other.run == v.run && !other.leased(now) && other.instant.Before(v.instant.Add(-grain)) {
			j.sim.broken("order", "%s of %s is claimed again before %s, which its key run had before it", v.id, v.key, other.id)
		}
	}
}

// weighted is the key whose turns have three times as many timers, in plans with FairKeys.
const weighted, weight = "k1", 3

// sorted is how long a timer has been due at least that has a place among the turns of keys.
const sorted = 3 * time.Second

// share checks that keys take turns: while a key waits, each other one starts no more than the
// rest of the turn that it has begun, and one more.
func (j *judge) share(v *version) {
	flow := j.sim.plan.Settings.Flow
	if !j.fixed || !j.plain || flow.FairKeys == 0 || flow.PerKey == 0 || flow.KeyRateLimit > 0 || v.key == "" {
		return
	}
	turn := flow.FairKeys
	if v.key == weighted {
		turn *= weight
	}
	delete(j.passed, v.key)
	if v.claimed { // it was given back, or has failed, and has its place from then
		return
	}
	for key := range j.ofKey {
		if key == v.key || !j.waits(key) {
			continue
		}
		if j.passed[key] == nil {
			j.passed[key] = map[string]int{}
		}
		if j.passed[key][v.key]++; j.passed[key][v.key] > 2*turn {
			j.sim.broken("share", "%s waits, and %d timers of %s have started since its last one", key, j.passed[key][v.key], v.key)
		}
	}
}

// waits reports whether a key has a timer that may run and is sorted, and forgets how many have
// passed it otherwise.
func (j *judge) waits(key string) (does bool) {
	for _, v := range j.ofKey[key] {
		if v.leased(j.sim.now()) {
			does = false
			break
		}
		does = does || v.due.Before(j.sim.now().Add(-sorted))
	}
	if !does {
		delete(j.passed, key)
	}
	return does
}

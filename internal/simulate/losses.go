package simulate

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/embedded/contents"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// writes are those that Redis loses. Their numbers are odd: it has lost all with the same number
// as soon as that has risen.
type writes int

// effect is what a call has written that may be repeated.
type effect struct {
	sim  *sim
	done bool
	at   writes
}

func (e *effect) note() { e.done, e.at = true, e.sim.writes }

// happened reports whether the call has written, and Redis has not lost it.
func (e *effect) happened() bool { return e.done && (e.at%2 == 0 || e.at == e.sim.writes) }

// loseWrites has Redis lose what it writes from now on, for up to 2 s, or 20 s.
func (s *sim) loseWrites(o Op) {
	lag := time.Duration(1+o.B) * 20 * time.Millisecond
	if o.A%3 == 0 {
		lag *= 10
	}
	s.lose(lag)
}

// loseNext has Redis now and then lose what it writes next, in plans with losses: its process goes on
// as if it had that. While Redis refuses commands it writes nothing.
func (s *sim) loseNext() {
	if s.plan.Loses && s.faulty && !s.refusesAll() && s.chance(0.05) {
		s.note("lose what is written next")
		s.lose(s.between(500*time.Microsecond, 6*time.Millisecond))
	}
}

// lose has Redis lose what it writes from now on: after a lag a replica takes over that has received
// none of it, nor any script.
func (s *sim) lose(lag time.Duration) {
	if s.writes%2 == 1 {
		return
	}
	s.prepare()
	had, err := contents.Of(s.server)
	if err != nil {
		s.broken("errors", "what Redis has: %v", err)
	}
	known := s.judge.keep()
	others := []func(){s.workflow.keep(), s.turns.keep(), s.keepMessages(), s.keepSchedules(), s.journey.keep(), s.minder.keep()}
	s.writes++
	s.after(lag, func() {
		s.note("a replica takes over, without the last %v", lag)
		if err := had.Restore(s.server); err != nil {
			s.broken("errors", "a replica takes over: %v", err)
		}
		s.server.FastForward(lag) // keys expire when they would have done
		s.flushScripts()
		s.writes++
		known.restore()
		for _, restore := range others {
			restore()
		}
		s.clients[0].afterFailover(known.target)
	})
}

// prepare divides the topics of the plan, so that Redis does not lose that.
func (s *sim) prepare() {
	if s.plan.joins() {
		s.waiting()
	}
	if s.plan.Seed%8 == 2 {
		s.minding()
	}
	if slices.ContainsFunc(s.plan.Ops, func(o Op) bool { return o.kind.name == "move" || o.kind.name == "schedule where it moves" }) {
		s.travelling()
	}
}

// afterFailover is what an operator does after a failover: the topic may be paused again, and a change
// of its layout be in the middle again that had come to its end.
func (c *client) afterFailover(target int) {
	c.resume()
	if target == 0 || target == c.target {
		return
	}
	c.target = target
	c.life.begin(immortal)
	c.step(target, new(shards.Progress))
}

// knowledge is what the judge knew of what Redis had.
type knowledge struct {
	judge    *judge
	versions map[*version]version
	current  map[string]*version
	dead     map[string][]*version
	leases   map[string]*version
	answered map[string]uint64
	marks    map[string]mark
	buckets  func() // restores the tokens of buckets
	retuned  wakebelltype.Settings
	target   int // of a change of the layout
}

func (j *judge) keep() *knowledge {
	k := &knowledge{
		judge: j, versions: map[*version]version{}, current: maps.Clone(j.current), dead: map[string][]*version{},
		leases: maps.Clone(j.leases), answered: maps.Clone(j.answered), marks: maps.Clone(j.marks), buckets: j.starts.keep(),
		retuned: j.sim.retuned, target: j.sim.clients[0].target,
	}
	for _, v := range j.current {
		k.versions[v] = *v
	}
	for id, letters := range j.dead {
		k.dead[id] = slices.Clone(letters)
		for _, v := range letters {
			k.versions[v] = *v
		}
	}
	return k
}

// restore has the judge expect that Redis has what it had. What handlers have done remains, and
// leases that Redis has lost exclude no process.
func (k *knowledge) restore() {
	j := k.judge
	for v, was := range k.versions {
		was.handled = was.handled || v.handled
		*v = was
	}
	j.removeAll()
	for _, v := range k.current {
		j.current[v.id] = v
		j.byKey(v)
		if v.token != "" {
			j.running[v] = true
		}
	}
	for lease := range j.leases {
		if k.leases[lease] == nil {
			j.voided[lease] = true
		}
	}
	j.dead, j.answered, j.marks = k.dead, k.answered, k.marks
	k.buckets()
	if j.sim.retuned != k.retuned {
		j.sim.retuned = k.retuned
		j.retuned(j.sim.limits())
	}
	j.ease()
}

// keep keeps what is known of a topic, and returns what has the judge expect that Redis has that.
func (d *side) keep() (restore func()) {
	timers, answered, versions := maps.Clone(d.timers), maps.Clone(d.answered), map[*version]version{}
	for _, v := range d.timers {
		versions[v] = *v
	}
	return func() {
		for v, was := range versions {
			was.handled = was.handled || v.handled
			*v = was
		}
		d.timers, d.answered = timers, answered
	}
}

// at returns the timer with an id on a side; nil: there is none.
func (d *side) at(id string) *version {
	if v := d.again[id]; v != nil && d.number == 0 {
		return v
	}
	return d.timers[id]
}

// remove notes that a timer has ended on a side.
func (d *side) remove(id string) {
	if d.again[id] != nil && d.number == 0 {
		delete(d.again, id)
		return
	}
	delete(d.timers, id)
}

// has reports whether a side has a timer that is not on its way.
func (d *side) has(id string) bool {
	_, err := d.store.Get(d.sim.ctx, travels, id)
	if err != nil && !errors.Is(err, wakebelltype.ErrNotFound) {
		d.sim.broken("errors", "get %s in Redis %d: %v", id, d.number, err)
	}
	return err == nil
}

// keep keeps what is known of the first Redis, and returns what has the judge expect that it has that
// again. The second one has lost nothing: what has moved there since is in both, or is delivered once
// more although it has ended. An operator has the topic moved again.
func (j *journey) keep() (restore func()) {
	if j == nil {
		return func() {}
	}
	from, to := j.sides[0], j.sides[1]
	here, was, onWay := map[string]*version{}, map[*version]version{}, map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(j.timers)) {
		switch v := from.at(id); {
		case from.has(id):
			here[id], was[v] = v, *v
		case !to.has(id):
			onWay[id] = true
		}
	}
	for id, v := range j.again {
		if j.timers[id] == nil && from.has(id) {
			here[id], was[v] = v, *v
		}
	}
	answered, starts, moving, begun := maps.Clone(from.answered), from.starts.keep(), j.moving, j.begun
	return func() {
		for _, id := range slices.Sorted(maps.Keys(j.timers)) {
			if here[id] == nil && !onWay[id] && !to.has(id) {
				delete(j.timers, id) // it was scheduled since
			}
		}
		clear(j.again)
		for id, v := range here {
			j.back(id, v, was[v])
		}
		from.answered = answered
		starts()
		if j.running != begun {
			j.undone = j.running
		}
		if moving && !j.moving {
			j.moving = true
			j.start(j.order, new(shards.MoveProgress))
		}
	}
}

// back notes that the first Redis has a timer again, as it was.
func (j *journey) back(id string, v *version, was version) {
	to := j.sides[1]
	if there := j.timers[id]; to.has(id) {
		if there == v {
			moved := *v
			j.timers[id] = &moved
			for lease, of := range to.leases {
				if of == v {
					to.leases[lease] = &moved
				}
			}
		}
		j.again[id] = v
	} else {
		j.timers[id] = v
	}
	was.handled = was.handled || v.handled
	*v = was
}

// keep keeps what is known of reminders, beside their schedules, and returns what has the judge expect
// that again.
func (m *minder) keep() (restore func()) {
	if m == nil {
		return func() {}
	}
	timers, was := m.side.keep(), map[*reminded]reminded{}
	for _, r := range m.reminders {
		was[r] = *r
	}
	return func() {
		timers()
		for _, r := range m.reminders {
			r.once, r.every = was[r].once, was[r].every
		}
	}
}

// keep keeps the tokens of buckets, and returns what restores them.
func (s *starts) keep() (restore func()) {
	buckets := map[string]bucket{}
	for name, b := range s.of {
		buckets[name] = *b
	}
	return func() {
		clear(s.of)
		for name, b := range buckets {
			s.of[name] = &b
		}
	}
}

// withLosses has Redis lose writes in a sixteenth of the plans, in half of those with joins, and in a
// quarter of those with reminders.
func (p *Plan) withLosses() {
	if p.Seed%16 != 14 && p.Seed%16 != 9 && p.Seed%32 != 2 {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 5)) //nolint:gosec // a plan is to be repeated
	lose := &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.drawn == losses })]
	var ops []Op
	for _, op := range p.Ops {
		if ops = append(ops, op); !op.Calm && (r.IntN(12) == 0 || op.kind.name == "reshard" && r.IntN(2) == 0) {
			ops = append(ops, Op{At: op.At, kind: lose, A: r.IntN(100), B: r.IntN(100)})
		}
	}
	p.Ops, p.Loses = ops, true
}

package simulate

import (
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

// loseWrites has Redis lose what it writes from now on, for up to 2 s, or 20 s: then a replica
// takes over that has received none of it, nor any script.
func (s *sim) loseWrites(o Op) {
	if s.writes%2 == 1 {
		return
	}
	had, err := contents.Of(s.server)
	if err != nil {
		s.broken("errors", "what Redis has: %v", err)
	}
	if s.plan.joins() {
		s.waiting() // or its topics would have to be divided once more
	}
	known, lag := s.judge.keep(), time.Duration(1+o.B)*20*time.Millisecond
	others := []func(){s.workflow.keep(), s.turns.keep(), s.keepMessages(), s.keepSchedules()}
	if o.A%3 == 0 {
		lag *= 10
	}
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
	buckets  map[string]bucket
	retuned  wakebelltype.Settings
	target   int // of a change of the layout
}

func (j *judge) keep() *knowledge {
	k := &knowledge{
		judge: j, versions: map[*version]version{}, current: maps.Clone(j.current), dead: map[string][]*version{},
		leases: maps.Clone(j.leases), answered: maps.Clone(j.answered), marks: maps.Clone(j.marks), buckets: map[string]bucket{},
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
	for name, b := range j.starts.of {
		k.buckets[name] = *b
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
	clear(j.starts.of)
	for name, b := range k.buckets {
		j.starts.of[name] = &b
	}
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

// withLosses has Redis lose writes in a sixteenth of the plans, and in half of those with joins.
// Their operations are those whose judge can forget.
func (p *Plan) withLosses() {
	if p.Seed%16 != 14 && p.Seed%16 != 9 {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 5)) //nolint:gosec // a plan is to be repeated
	lose := &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.drawn == losses })]
	var ops []Op
	for _, op := range p.Ops {
		if slices.Contains(remembered, op.kind.name) {
			op.kind = &kinds[0]
		}
		switch ops = append(ops, op); {
		case op.Calm:
		case r.IntN(12) == 0 || op.kind.name == "reshard" && r.IntN(2) == 0:
			ops = append(ops, Op{At: op.At, kind: lose, A: r.IntN(100), B: r.IntN(100)})
		case op.kind.drawn == joined && r.IntN(2) == 0: // while its parts end, or its client goes on
			ops = append(ops, Op{At: op.At + time.Duration(r.IntN(100))*time.Millisecond, kind: lose, A: 1 + r.IntN(2), B: r.IntN(5)})
		}
	}
	p.Ops = ops
}

// remembered are the operations that the judge cannot forget.
var remembered = []string{
	"schedule where it moves", "move",
}

package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/wakebelltype"
)

// outage is a time in which Redis is away, or refuses what nodes and clients ask of it.
type outage struct {
	away    time.Time // until when no command reaches it
	refuses time.Time // until when it answers with refusal
	refusal string
	mend    func()    // gives a key its type again; nil: none has another
	mended  time.Time // when it does
}

// refusals are answers to commands that have no effect.
var refusals = []string{
	"LOADING Redis is loading the dataset in memory",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"READONLY You can't write against a read only replica.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"NOREPLICAS Not enough good replicas to write.",
}

// restartRedis has Redis be away for a while, and forget its scripts.
func (s *sim) restartRedis(o Op) {
	s.flushScripts()
	s.outage.away = time.Now().Add(time.Duration(o.B) * 100 * time.Millisecond)
}

// refuseCommands has Redis refuse commands for a while.
func (s *sim) refuseCommands(o Op) {
	s.outage.refuses, s.outage.refusal = time.Now().Add(time.Duration(o.B)*100*time.Millisecond), refusals[o.A%len(refusals)]
}

// away reports whether no command reaches Redis.
func (s *sim) away() bool { return s.faulty && time.Now().Before(s.outage.away) }

// refusing reports whether Redis refuses commands: all, or those that meet a key of another type.
func (s *sim) refusing() bool { return s.refusesAll() || s.outage.mend != nil }

func (s *sim) refusesAll() bool { return s.faulty && time.Now().Before(s.outage.refuses) }

// outlast waits until Redis carries out the commands of an operation that is not repeated.
func (s *sim) outlast(k *kind) {
	if k.drawn == always || k.drawn == faulty || k.drawn >= outages {
		return
	}
	for s.away() {
		s.until(s.outage.away)
	}
	for s.refusesAll() {
		s.until(s.outage.refuses)
	}
	for s.refusing() {
		s.until(s.outage.mended)
	}
}

// attempt makes a call whose commands Redis may refuse, and reports whether it has: the error is
// expected then. Calls without commands, and those to the second Redis, succeed meanwhile.
func (s *sim) attempt(call func() error) (refused bool, err error) {
	if !s.refusing() {
		return false, call()
	}
	if s.refusesAll() {
		s.server.SetError(s.outage.refusal)
		defer s.server.SetError("")
	}
	err = call()
	return err != nil && (s.refusesAll() || errors.Is(err, wakebelltype.ErrWrongType)), err
}

// withOutages adds outages of Redis to an eighth of the plans, and to a quarter of those with
// joins.
func (p *Plan) withOutages() {
	if p.Seed%8 != 6 && p.Seed%32 != 25 {
		return
	}
	p.Loss = max(p.Loss, 0.02) // calls are repeated
	p.addFaults(outages, 4, 12)
}

// supervisor holds the pollers of a node while a Redis is down, as that of a System does: one
// after the other probes it, and all go on when it is back.
type supervisor struct {
	node          *node
	second        bool // the Redis to which a topic moves
	down, probing bool
	failures      int // of probes
	next          int // the poller that probes next
	waits         int // the number of the last wait
}

// Of probes, as in a System.
const (
	firstProbe   = 50 * time.Millisecond
	longestProbe = time.Second
	probeTimeout = 30 * time.Second
)

// pollers are those of the Redis.
func (v *supervisor) pollers() []*poller {
	return slices.DeleteFunc(v.node.all(), func(p *poller) bool { return p.second != v.second })
}

// told is what a poller has noticed.
func (v *supervisor) told(a leasing.Availability) {
	switch {
	case a == leasing.Available && v.down:
		v.down, v.probing = false, false
		v.waits++
		for _, p := range v.pollers() {
			p.event(func(c *leasing.Core) { c.Resume(time.Now(), time.Millisecond) })
		}
	case a == leasing.Unavailable && !v.down:
		v.down, v.failures = true, 0
		for _, p := range v.pollers() {
			p.event(func(c *leasing.Core) { c.Hold(time.Now()) })
		}
		v.probeAfter(firstProbe)
	case a == leasing.Unavailable && v.probing:
		v.probing = false
		v.failures++
		v.probeAfter(backoff.Jitter(backoff.Exponential(firstProbe, v.failures, longestProbe), 0.5, v.node.sim.random.Float64()))
	case a == leasing.Unprobed && v.probing:
		v.probing = false
		v.probeAfter(firstProbe)
	}
}

// probeAfter has the next poller try Redis after a while.
func (v *supervisor) probeAfter(d time.Duration) {
	v.waits++
	this := v.waits
	v.node.after(d, func() {
		if v.waits != this || !v.down {
			return
		}
		if all := v.pollers(); len(all) > 0 {
			v.probing = true
			v.next++
			all[v.next%len(all)].event((*leasing.Core).Probe)
		}
		v.probeAfter(probeTimeout)
	})
}

package actors

import (
	"maps"
	"slices"
	"time"
)

// While Redis is down as a whole, one poller at a time tries it on behalf of
// all, so that what a node sends does not grow with its number of topics.
// These messages go between the root supervisor and its pollers.
type (
	unavailable struct{ err error } // an exchange failed; it waits to be asked
	available   struct{}            // an exchange was answered
	hold        struct{}            // send nothing
	probe       struct{}            // try once
	resume      struct {            // go on, at a random moment within
		within time.Duration
	}
	nextProbe struct{ generation int } // the supervisor to itself
)

const (
	firstProbe = 50 * time.Millisecond
	maxProbe   = 5 * time.Second
	// probeTimeout replaces a probe that was never answered, as when its
	// poller was restarted.
	probeTimeout = 30 * time.Second
	// resumePerTopic spreads the first exchanges after an outage.
	resumePerTopic = 200 * time.Microsecond
	maxResume      = 2 * time.Second
)

// outage is what the supervisor knows of a Redis that is down.
type outage struct {
	since    time.Time // zero: Redis is up
	failures int
	turn     int  // whose it is to probe, in the order of the topics' names
	probing  bool // a probe is out

	timer      *time.Timer
	generation int // tells the current timer's message from earlier ones
}

func (o *outage) stop() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

func (s *supervisor) redisDown(m unavailable) {
	o := &s.outage
	if o.since.IsZero() {
		o.since = time.Now()
		s.rt.log.Error("redis is down; one topic at a time tries it again", "err", m.err)
		s.broadcast(hold{})
		s.probeAfter(firstProbe)
		return
	}
	if o.probing {
		o.probing = false
		o.failures++
		s.probeAfter(spread(doubled(firstProbe, o.failures, maxProbe), 0.5, s.rt.random()))
	}
}

func (s *supervisor) probeAfter(d time.Duration) {
	o := &s.outage
	o.stop()
	o.generation++
	root, self, generation := s.root, s.self, o.generation
	o.timer = time.AfterFunc(d, func() { root.Send(self, nextProbe{generation}) })
}

// sendProbe asks one poller after the other, whether it has something to send
// or not: the one that noticed the outage may be gone, or broken in itself.
func (s *supervisor) sendProbe(m nextProbe) {
	o := &s.outage
	if m.generation != o.generation || o.since.IsZero() {
		return
	}
	if names := slices.Sorted(maps.Keys(s.pollers)); len(names) > 0 {
		s.root.Send(s.pollers[names[o.turn%len(names)]], probe{})
		o.turn++
		o.probing = true
	}
	s.probeAfter(probeTimeout)
}

func (s *supervisor) redisUp() {
	o := &s.outage
	if o.since.IsZero() {
		return
	}
	s.rt.log.Info("redis is back", "down_for", time.Since(o.since).Round(time.Millisecond))
	o.stop()
	s.outage = outage{generation: o.generation + 1}
	s.broadcast(resume{within: min(time.Duration(len(s.pollers))*resumePerTopic, maxResume)})
}

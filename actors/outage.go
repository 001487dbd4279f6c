package actors

import (
	"slices"
	"time"
)

// While the server of some topics is down as a whole, one poller at a time
// tries it on behalf of all of them, so that what a node sends does not grow
// with its number of topics. Most nodes have one server; the shards of a Cluster
// fail one by one. These messages go between the root supervisor and its
// pollers.
type (
	unavailable struct { // an exchange failed; its poller waits to be asked
		shard string
		err   error
	}
	available struct{ shard string } // an exchange was answered
	hold      struct{}               // send nothing
	probe     struct{}               // try once
	resume    struct {               // go on, at a random moment within
		within time.Duration
	}
	nextProbe struct { // the supervisor to itself
		shard      string
		generation int
	}
)

const (
	firstProbe = 50 * time.Millisecond
	maxProbe   = time.Second
	// probeTimeout replaces a probe that was never answered, as when its
	// poller was restarted.
	probeTimeout = 30 * time.Second
	// resumePerTopic spreads the first exchanges after an outage.
	resumePerTopic = 200 * time.Microsecond
	maxResume      = 2 * time.Second
)

// outage is what the supervisor knows of a shard that is down.
type outage struct {
	since    time.Time
	failures int
	turn     int  // whose it is to probe, in the order of the topics' names
	probing  bool // a probe is out

	timer      *time.Timer
	generation int // tells the current timer's message from earlier ones
}

func (s *supervisor) redisDown(m unavailable) {
	o := s.outages[m.shard]
	switch {
	case o == nil:
		s.generation++
		o = &outage{since: time.Now(), generation: s.generation}
		s.outages[m.shard] = o
		s.rt.env.Logger.Error("redis is down; one topic at a time tries it again", "err", m.err, "shard", m.shard)
		for _, name := range s.topicsOf(m.shard) {
			s.root.Send(s.pollers[name], hold{})
		}
		s.probeAfter(m.shard, o, firstProbe)
	case o.probing:
		o.probing = false
		o.failures++
		s.probeAfter(m.shard, o, spread(doubled(firstProbe, o.failures, maxProbe), 0.5, s.rt.env.Random()))
	}
}

// topicsOf are the topics of a shard, in the order of their names.
func (s *supervisor) topicsOf(shard string) []string {
	var names []string
	for name := range s.pollers {
		if t, ok := s.rt.topic(name); ok && t.Source.Shard() == shard {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *supervisor) probeAfter(shard string, o *outage, d time.Duration) {
	o.stop()
	s.generation++
	o.generation = s.generation
	root, self, next := s.root, s.self, nextProbe{shard, o.generation}
	o.timer = time.AfterFunc(d, func() { root.Send(self, next) })
}

func (o *outage) stop() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// sendProbe asks one poller after the other, whether it has something to send
// or not: the one that noticed the outage may be gone, or broken in itself.
func (s *supervisor) sendProbe(m nextProbe) {
	o := s.outages[m.shard]
	if o == nil || m.generation != o.generation {
		return
	}
	if names := s.topicsOf(m.shard); len(names) > 0 {
		s.root.Send(s.pollers[names[o.turn%len(names)]], probe{})
		o.turn++
		o.probing = true
	}
	s.probeAfter(m.shard, o, probeTimeout)
}

func (s *supervisor) redisUp(m available) {
	o := s.outages[m.shard]
	if o == nil {
		return
	}
	s.rt.env.Logger.Info("redis is back", "down_for", time.Since(o.since).Round(time.Millisecond), "shard", m.shard)
	o.stop()
	delete(s.outages, m.shard)
	names := s.topicsOf(m.shard)
	within := min(time.Duration(len(names))*resumePerTopic, maxResume)
	for _, name := range names {
		s.root.Send(s.pollers[name], resume{within: within})
	}
}

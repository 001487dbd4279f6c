package actors

import (
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/metrics"
)

// While the server of some topics is down, one poller at a time probes it on
// behalf of all of them, so that the load of a node does not grow with its number
// of topics. Most nodes have one server; the shards of a Cluster fail one by one.
type (
	probeDue struct { // the supervisor to itself
		shard      string
		generation int
	}
)

const (
	firstProbeDelay = 50 * time.Millisecond
	// probeTimeout replaces a probe without an answer, as when its poller was
	// restarted.
	probeTimeout = 30 * time.Second
	// resumeSpreadPerTopic spreads the first exchanges after an outage.
	resumeSpreadPerTopic = 200 * time.Microsecond
	maxResumeSpread      = 2 * time.Second
)

// outage is the state of a shard that is down.
type outage struct {
	since    time.Time
	failures int
	next     int  // the index of the next topic to probe, in the order of names
	probing  bool // a probe is in flight

	timer      *time.Timer
	generation int // of the current timer's message
}

func (s *supervisor) redisDown(m poller.Unavailable) {
	o := s.outages[m.Shard]
	switch {
	case o == nil:
		s.generation++
		o = &outage{since: time.Now(), generation: s.generation}
		s.outages[m.Shard] = o
		s.rt.noteOutage(m.Shard, true)
		s.rt.env.Logger.Error("redis is down; one topic at a time probes it", "err", m.Err, "shard", m.Shard)
		for _, name := range s.topicsOf(m.Shard) {
			s.root.Send(s.pollers[name], poller.Hold{})
		}
		s.probeAfter(m.Shard, o, firstProbeDelay)
	case o.probing:
		o.probing = false
		o.failures++
		s.probeAfter(m.Shard, o, backoff.Jitter(backoff.Exponential(firstProbeDelay, o.failures, host.MaxProbeDelay), 0.5, s.rt.env.Random()))
	}
}

// topicsOf returns the topics of a shard, in the order of their names.
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
	root, self, next := s.root, s.self, probeDue{shard, o.generation}
	o.timer = time.AfterFunc(d, func() { root.Send(self, next) })
}

func (o *outage) stop() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// sendProbe asks one poller after the other: the one that noticed the outage may
// have been removed, or may fail by itself.
func (s *supervisor) sendProbe(m probeDue) {
	o := s.outages[m.shard]
	if o == nil || m.generation != o.generation {
		return
	}
	if names := s.topicsOf(m.shard); len(names) > 0 {
		s.root.Send(s.pollers[names[o.next%len(names)]], poller.Probe{})
		o.next++
		o.probing = true
	}
	s.probeAfter(m.shard, o, probeTimeout)
}

// unprobed probes with the next topic.
func (s *supervisor) unprobed(m poller.Unprobed) {
	if o := s.outages[m.Shard]; o != nil && o.probing {
		o.probing = false
		s.probeAfter(m.Shard, o, firstProbeDelay)
	}
}

func (s *supervisor) redisUp(m poller.Available) {
	o := s.outages[m.Shard]
	if o == nil {
		return
	}
	s.rt.env.Logger.Info("redis is back", "duration", time.Since(o.since).Round(time.Millisecond), "shard", m.Shard)
	o.stop()
	delete(s.outages, m.Shard)
	s.rt.noteOutage(m.Shard, false)
	names := s.topicsOf(m.Shard)
	within := min(time.Duration(len(names))*resumeSpreadPerTopic, maxResumeSpread)
	for _, name := range names {
		s.root.Send(s.pollers[name], poller.Resume{Within: within})
	}
}

// noteOutage notes for the metrics that the outage of a shard has begun or ended.
func (rt *Runtime) noteOutage(shard string, down bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	o := rt.outages[shard]
	if o.Down && !down {
		o.Ended++
	}
	o.Shard, o.Down = shard, down
	rt.outages[shard] = o
}

// Outages returns the state of all shards of the topics, and of those that were down.
func (rt *Runtime) Outages() []metrics.Outage {
	topics := rt.all()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	shards := maps.Clone(rt.outages)
	for _, t := range topics {
		if _, known := shards[t.Source.Shard()]; !known {
			shards[t.Source.Shard()] = metrics.Outage{Shard: t.Source.Shard()}
		}
	}
	return slices.Collect(maps.Values(shards))
}

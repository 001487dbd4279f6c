package wakebell

import (
	"slices"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/redisops/timers"
)

func (s *System) actorTopics() []poller.Topic {
	topics := make([]poller.Topic, 0, len(s.polled))
	for _, h := range s.cfg.Handlers {
		for _, name := range s.polled[h.topic] {
			topics = append(topics, s.actorTopic(h, name, len(s.polled[h.topic])))
		}
	}
	return topics
}

// actorTopic returns the poller of one of the physical topics of a handler.
func (s *System) actorTopic(h Handler, physical string, shards int) poller.Topic {
	h.log = s.on.Logger
	full := s.on.Prefix + h.topic
	source, keys := s.source(h, physical)
	if s.hooks.Source != nil {
		source = s.hooks.Source(source)
	}
	mw := slices.Concat(s.decoding(h), s.cfg.Middleware, h.set.middleware)
	measures := s.on.Metrics.Topic(physical)
	if h.set.queue != nil {
		measures = s.on.Metrics.Queue(physical)
	}
	topic := poller.Topic{
		Source:   s.on.Metrics.Source(measures, source),
		Handle:   measured(measures, chain(h, mw, s.tracer.Consumer())),
		Target:   h.set.target,
		Settings: s.tunable(h.set),
		Policy: leasing.Policy{
			DiscardRejects:     h.set.discardRejected,
			RetryOnLeaseExpiry: h.set.retryOnExpiry,
			PanicBackoff:       h.set.panicBackoff,
			Window:             h.set.window,
			OverrideInterval:   s.hooks.Idle,
			Group:              s.groups.named(h.set.group), Weight: h.set.weight,
		},
		History:   h.set.history,
		Breaker:   h.set.breaker,
		Adaptive:  h.set.adaptive,
		GroupName: h.set.group,
		NoCounts:  s.on.NoCounts,
	}
	if s.hooks.NoWindow && topic.Window == poller.AutomaticWindow {
		topic.Window = 0
	}
	topic.Part = s.parts[h.topic][physical]
	if topic.Shards = shards; h.set.queue == nil {
		topic.ShardGroup = s.groups.named(groupOfShards + h.topic)
	}
	if physical != full {
		topic.Logical = full
	}
	if h.batch != nil {
		topic.Batch = h.set.batch
		topic.HandleBatch = measuredBatch(measures, chainBatch(h, mw, s.tracer.Consumer()))
	}
	if q := h.set.queue; q != nil {
		topic.FinalErrors, topic.FinalCrashes = q.finalErrors, q.atMostOnce
		topic.RecordStore = queueRecords{s.queueNamed(source.Name())}
	} else {
		if topic.Node, topic.Reporter = s.node, keys; !s.on.NoDivision {
			topic.Announcer = keys
		}
		topic.ReadOverride = s.readOverride(keys, pollerSettings(h.set.tuned))
	}
	return topic
}

// source returns the source from which the poller of a handler claims leases; the
// second is the same, nil for a queue.
func (s *System) source(h Handler, physical string) (poller.Source, *timers.TimerSource) {
	if h.set.queue == nil {
		source := s.store.Source(physical, timers.SourceOptions{
			MaxClaims:  h.set.maxClaims(),
			DeadCap:    s.cfg.DeadLetterCap,
			SkipFailed: h.set.skipFailed,
		})
		return source, source
	}
	return s.queueNamed(s.on.Prefix + h.topic).Source(h.set.queue.options(h.set, s.cfg)), nil
}

func (s *System) tunable(set settings) poller.Settings {
	t := pollerSettings(set.tuned)
	t.MaxPollingInterval = max(t.MaxPollingInterval, s.hooks.Idle)
	return t
}

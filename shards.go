package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/sharding"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// divide stores the number of shards that a handler wants, unless its topic has one.
func (s *System) divide(ctx context.Context, h Handler) error {
	if h.set.shards == 0 || h.set.queue != nil {
		return nil
	}
	topic := s.on.Prefix + h.topic
	l, err := s.shards.Divide(ctx, topic, h.set.shards)
	if err != nil {
		return err
	}
	if l.Count() != h.set.shards {
		s.on.Logger.WarnContext(ctx, "the topic has another number of shards than the handler; it keeps its own",
			"topic", topic, "shards", l.Count(), "wanted", h.set.shards)
	}
	return nil
}

// physical returns the physical topics that a handler polls; of a queue, the queue.
func (s *System) physical(ctx context.Context, h Handler) ([]string, error) {
	full := s.on.Prefix + h.topic
	if h.set.queue != nil {
		return []string{full}, nil
	}
	return s.shards.Polled(ctx, full)
}

// partsOf returns the parts of the limits of a handler that its physical topics have; nil: it
// has one.
func (s *System) partsOf(ctx context.Context, h Handler) (map[string]sharding.Part, error) {
	if h.set.queue != nil {
		return nil, nil
	}
	return s.shards.Parts(ctx, s.on.Prefix+h.topic)
}

// groupOfShards precedes the name of a topic in that of the group in which its shards share
// MaxConcurrent. No group of a user has it.
const groupOfShards = "\x00shards of "

// warnOfLimit logs that a handler has a MaxInFlight that its shards exceed together.
func (s *System) warnOfLimit(h Handler, names []string) {
	_, shards, _ := sharding.Split(names[0]) // the shards in which timers are stored come first
	if most := h.set.tuned.MaxInFlight; most > 0 && most < shards {
		s.on.Logger.Warn("MaxInFlight is less than the number of shards; each shard has 1",
			"topic", s.on.Prefix+h.topic, "max_in_flight", most, "shards", shards)
	}
}

// learnPolled stores which physical topics the handlers of the configuration poll. It asks Redis
// without the lock, for which every call about a topic waits.
func (s *System) learnPolled(ctx context.Context) error {
	polled, parts := map[string][]string{}, map[string]map[string]sharding.Part{}
	for _, h := range s.cfg.Handlers {
		names, err := s.physical(ctx, h)
		if err == nil {
			parts[h.topic], err = s.partsOf(ctx, h)
		}
		if err != nil {
			return err
		}
		polled[h.topic] = names
		s.warnOfLimit(h, names)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	maps.Copy(s.polled, polled)
	maps.Copy(s.parts, parts)
	return nil
}

// watchShards follows the layouts of the handled topics until the System stops.
func (s *System) watchShards(ctx context.Context) {
	idle := cmp.Or(s.hooks.Idle, shards.Fresh)
	tick := time.NewTimer(idle)
	defer tick.Stop()
	enlist := time.NewTicker(max(enlistEvery, s.hooks.Idle))
	defer enlist.Stop()
	for {
		select {
		case <-enlist.C:
			s.enlist(ctx)
			continue
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.divided:
		}
		if s.followShards(ctx) {
			tick.Reset(whileMoving)
		} else {
			tick.Reset(idle)
		}
	}
}

// enlistEvery is the interval at which a node registers its topics and queues again.
// Schedules and publishes register them too, but a topic may have none for long.
const enlistEvery = 45 * time.Second

// enlist registers the topics and queues of the node, in case the registry was lost.
func (s *System) enlist(ctx context.Context) {
	s.changing.Lock()
	var topics []string
	var queues []*queuestore.Queue
	for topic, h := range s.handlers {
		if s.removing[topic] != nil {
			continue
		}
		if h.set.queue == nil {
			topics = append(topics, s.polled[topic]...)
		} else if q := s.queueNamed(s.on.Prefix + topic); q != nil {
			queues = append(queues, q)
		}
	}
	s.changing.Unlock()
	err := errors.Join(s.store.Enlist(ctx, topics), queuestore.Enlist(ctx, s.store, queues))
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrDenied) { // a user may lack the right to the lists
		s.on.Logger.WarnContext(ctx, "topics of the node are not registered", "err", err)
	}
}

// whileMoving is the interval of the checks while timers of a topic move to other shards:
// what a process has left in an outbox is delivered within a second.
const whileMoving = 200 * time.Millisecond

// followShards starts and ends pollers as the layouts of topics have changed, and reports
// whether timers of one of them move.
func (s *System) followShards(ctx context.Context) (moving bool) {
	failed := func(err error) bool { return err != nil && ctx.Err() == nil } // the end of the System is no fault
	if err := s.shards.Map().Renew(ctx); failed(err) {
		s.on.Logger.WarnContext(ctx, "layouts of topics could not be read", "err", err)
	}
	none, err := s.shards.Map().None(ctx)
	if err != nil { // as before
		return false
	}
	s.changing.Lock()
	var handlers []Handler
	for topic, h := range s.handlers {
		lost := len(s.polled[topic]) > 1 // a failover may have lost the map
		if h.set.queue == nil && s.removing[topic] == nil && (!none || lost) {
			handlers = append(handlers, *h)
		}
	}
	s.changing.Unlock()
	for _, h := range handlers {
		full := s.on.Prefix + h.topic
		if _, err := s.shards.Settle(ctx, full); failed(err) {
			s.on.Logger.WarnContext(ctx, "the layout of a topic could not be settled", "topic", full, "err", err)
		}
		moves, err := s.shards.DeliverAbandoned(ctx, full)
		if moving = moving || moves; failed(err) {
			s.on.Logger.WarnContext(ctx, "timers that move to other shards could not be delivered there", "topic", full, "err", err)
		}
		names, err := s.physical(ctx, h)
		var parts map[string]sharding.Part
		if err == nil {
			parts, err = s.partsOf(ctx, h)
		}
		if err == nil {
			err = s.repoll(h, names, parts)
		}
		if failed(err) && !errors.Is(err, ErrNotRunning) {
			s.on.Logger.WarnContext(ctx, "pollers do not follow the layout of the topic", "topic", full, "err", err)
		}
	}
	return moving
}

// repoll gives a handler a poller for each of the physical topics, with its part of the
// limits, and no others.
func (s *System) repoll(h Handler, names []string, parts map[string]sharding.Part) error {
	var ended []string
	err := s.change(func(rt *actors.Runtime) error {
		polled := s.polled[h.topic]
		if slices.Equal(names, polled) && maps.Equal(parts, s.parts[h.topic]) || len(polled) == 0 || s.removing[h.topic] != nil {
			return nil
		}
		s.parts[h.topic] = parts
		h := s.handlers[h.topic] // RetuneLocal may have changed it
		_, paused, err := rt.State(polled[0])
		if err != nil {
			return err
		}
		for _, name := range names {
			if slices.Contains(polled, name) {
				continue
			}
			topic := s.actorTopic(h, name, len(names))
			topic.Paused = paused
			if err := rt.Add(topic); err != nil {
				return err
			}
			s.polled[h.topic] = append(s.polled[h.topic], name)
		}
		for _, name := range polled {
			if !slices.Contains(names, name) {
				ended = append(ended, name)
			}
		}
		s.polled[h.topic] = slices.Clone(names)
		s.warnOfLimit(*h, names)
		for _, name := range s.polled[h.topic] {
			if err := rt.Tune(name, func(to *poller.Settings) { to.Shards, to.Part = len(names), parts[name] }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(ended) == 0 {
		return err
	}
	_, err = s.removePollers(s.running(), ended) // without the lock, because a drain takes long
	return err
}

// topicOf returns the topic of a source. The name of a queue may look like that of a shard.
func (s *System) topicOf(source string) string {
	if s.queueNamed(source) != nil {
		return source
	}
	return sharding.Topic(source)
}

// byTopic adds the counters of the shards of each topic.
func (s *System) byTopic(physical map[string]wakebelltype.Counters) map[string]wakebelltype.Counters {
	all := make(map[string]wakebelltype.Counters, len(physical))
	for name, c := range physical {
		topic := s.topicOf(name)
		if sum, more := all[topic]; more {
			c = addCounters(sum, c)
		}
		all[topic] = c
	}
	return all
}

// addCounters adds counters, and takes the later LastExchange.
func addCounters(a, b wakebelltype.Counters) wakebelltype.Counters {
	sum, other := reflect.ValueOf(&a).Elem(), reflect.ValueOf(b)
	for i := range sum.NumField() {
		if f := sum.Field(i); f.CanInt() {
			f.SetInt(f.Int() + other.Field(i).Int())
		}
	}
	if b.LastExchange.After(a.LastExchange) {
		a.LastExchange = b.LastExchange
	}
	return a
}

// joinShards makes one TopicHealth of the shards of each topic, which are in the order of
// their names.
func (s *System) joinShards(topics []TopicHealth) []TopicHealth {
	places := map[string]int{}
	var all []TopicHealth
	for _, t := range topics {
		t.Topic = s.topicOf(t.Topic)
		i, more := places[t.Topic]
		if !more {
			places[t.Topic] = len(all)
			all = append(all, t)
			continue
		}
		sum := &all[i]
		if t.LastExchange.After(sum.LastExchange) {
			sum.LastExchange = t.LastExchange
		}
		if sum.DownSince.IsZero() || !t.DownSince.IsZero() && t.DownSince.Before(sum.DownSince) {
			sum.DownSince = t.DownSince
		}
		sum.Silent, sum.Behind, sum.Failures = max(sum.Silent, t.Silent), max(sum.Behind, t.Behind), max(sum.Failures, t.Failures)
		sum.Paused, sum.Running = sum.Paused || t.Paused, sum.Running+t.Running
		sum.Err = cmp.Or(sum.Err, t.Err)
		if sharding.BreakerRank(t.Breaker) > sharding.BreakerRank(sum.Breaker) {
			sum.Breaker, sum.BreakerSince, sum.BreakerUntil, sum.BreakerReason = t.Breaker, t.BreakerSince, t.BreakerUntil, t.BreakerReason
		}
	}
	return all
}

// physicalOr returns the physical topics of full names, or the names while Redis does not
// say which there are.
func (c *Client) physicalOr(ctx context.Context, full []string) ([]string, error) {
	names, err := c.store.Physical(ctx, full...)
	if errors.Is(err, ErrInvalid) {
		return nil, fmt.Errorf("diagnose: %w", err)
	}
	if err != nil {
		return full, nil
	}
	return names, nil
}

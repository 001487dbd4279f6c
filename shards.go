package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Shards divides the topic into n shards, 1 – 256; default 1. Redis Cluster spreads the
// shards over its servers, and one Redis uses a core for all of them. The number is stored
// in Redis and holds for all nodes and clients: the first node that starts while the topic
// has no timers and no dead letters stores it. Where another number is stored, that one
// applies, and the node logs a warning.
//
// The id of a timer decides its shard, or its Key, if it has one. So in a topic with
// shards, schedule an id with the same Key each time: with another Key it is another timer.
// RateLimit and MaxInFlight are divided among the shards, each of which has at least 1.
// Python workers and nodes of earlier versions do not find the timers
// of a topic with shards.
func Shards(n int) HandlerOption {
	return topicOption(func(s *settings) error {
		s.shards = n
		return within("Shards", n, 1, sharding.MaxShards)
	})
}

// Shards returns the number of shards of a topic.
func (c *Client) Shards(ctx context.Context, topic string) (int, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	l, err := c.store.Layout(ctx, full)
	return l.Count(), err
}

// divide stores the number of shards that a handler wants, unless its topic has one.
func (s *System) divide(ctx context.Context, h Handler) error {
	if h.set.shards == 0 || h.set.queue != nil {
		return nil
	}
	topic := s.cfg.Prefix + h.topic
	l, err := s.shards.Divide(ctx, topic, h.set.shards)
	if err == nil && l.Count() != h.set.shards {
		s.cfg.Logger.WarnContext(ctx, "the topic has another number of shards than the handler; it keeps its own",
			"topic", topic, "shards", l.Count(), "wanted", h.set.shards)
	}
	return err
}

// physical returns the physical topics that a handler polls; of a queue, the queue.
func (s *System) physical(ctx context.Context, h Handler) ([]string, error) {
	full := s.cfg.Prefix + h.topic
	if h.set.queue != nil {
		return []string{full}, nil
	}
	return s.shards.Polled(ctx, full)
}

// groupOfShards precedes the name of a topic in that of the group in which its shards share
// MaxConcurrent. No group of a user has it.
const groupOfShards = "\x00shards of "

// learnPolled stores which physical topics the handlers of the configuration poll.
func (s *System) learnPolled(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	for _, h := range s.cfg.Handlers {
		names, err := s.physical(ctx, h)
		if err != nil {
			return err
		}
		s.polled[h.topic] = names
	}
	return nil
}

// watchShards follows the layouts of the handled topics until the System stops.
func (s *System) watchShards(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(s.hooks.Idle, shards.Fresh))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.followShards(ctx)
		}
	}
}

// followShards starts and ends pollers as the layouts of topics have changed.
func (s *System) followShards(ctx context.Context) {
	if none, err := s.shards.Map().None(ctx); none || err != nil { // an error: as before
		return
	}
	s.changing.Lock()
	var handlers []Handler
	for topic, h := range s.handlers {
		if h.set.queue == nil && s.removing[topic] == nil {
			handlers = append(handlers, h)
		}
	}
	s.changing.Unlock()
	for _, h := range handlers {
		full := s.cfg.Prefix + h.topic
		if _, err := s.shards.Settle(ctx, full); err != nil {
			s.cfg.Logger.WarnContext(ctx, "the layout of a topic could not be settled", "topic", full, "err", err)
		}
		names, err := s.physical(ctx, h)
		if err == nil {
			err = s.repoll(h, names)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotRunning) {
			s.cfg.Logger.WarnContext(ctx, "pollers do not follow the layout of the topic", "topic", full, "err", err)
		}
	}
}

// repoll gives a handler a poller for each of the physical topics, and no others.
func (s *System) repoll(h Handler, names []string) error {
	var ended []string
	err := s.change(func(rt *actors.Runtime) error {
		polled := s.polled[h.topic]
		if slices.Equal(names, polled) || len(polled) == 0 || s.removing[h.topic] != nil {
			return nil
		}
		h.set = s.settings[h.topic] // RetuneLocal may have changed it
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
		return s.tuneAll(rt, h.topic, func(to *poller.Settings) { to.Shards = len(names) })
	})
	if err != nil || len(ended) == 0 {
		return err
	}
	_, err = s.removePollers(s.running(), ended) // without the lock, because a drain takes long
	return err
}

// tuneAll changes the settings of all pollers of a topic. The caller holds changing.
func (s *System) tuneAll(rt *actors.Runtime, topic string, change func(*poller.Settings)) error {
	for _, name := range s.polled[topic] {
		if err := rt.Tune(name, change); err != nil {
			return err
		}
	}
	return nil
}

// addPollers starts the pollers of a handler, all or none. The caller holds changing.
func (s *System) addPollers(rt *actors.Runtime, h Handler, names []string) error {
	for i, name := range names {
		if err := rt.Add(s.actorTopic(h, name, len(names))); err != nil {
			_, failed := s.removePollers(rt, names[:i])
			return errors.Join(err, failed)
		}
	}
	s.polled[h.topic] = slices.Clone(names)
	return nil
}

// removePollers drains and removes pollers.
func (s *System) removePollers(rt *actors.Runtime, names []string) (*messages.Drained, error) {
	if rt == nil {
		return nil, ErrNotRunning
	}
	type answer struct {
		drained *messages.TopicDrained
		err     error
	}
	answers := make(chan answer, len(names))
	for _, name := range names {
		go func() {
			drained, err := rt.Remove(name, s.cfg.DrainTimeout)
			answers <- answer{drained, err}
		}()
	}
	all := &messages.Drained{}
	var errs []error
	for range names {
		a := <-answers
		errs = append(errs, a.err)
		if a.drained != nil {
			all.Topics = append(all.Topics, a.drained)
		}
	}
	return all, errors.Join(errs...)
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
		if breakerRank(t.Breaker) > breakerRank(sum.Breaker) {
			sum.Breaker = t.Breaker
		}
	}
	return all
}

// breakerRank orders the states of circuit breakers by how much they hold back.
func breakerRank(state string) int {
	return slices.Index([]string{"closed", "half-open", "open"}, state)
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

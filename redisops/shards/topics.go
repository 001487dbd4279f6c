package shards

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// CancelAll removes every timer of all shards and returns their number; see
// [timers.Timers.CancelAll].
func (s *Store) CancelAll(ctx context.Context, topic string) (int64, error) {
	return s.sum(ctx, topic, func(ctx context.Context, at timers.Fenced, name string) (int64, error) {
		return at.CancelAll(ctx, name)
	})
}

// Forget removes all keys of all shards; see [timers.Timers.Forget]. The layout stays,
// because clients may use it for [Fresh] more.
func (s *Store) Forget(ctx context.Context, topic string) error {
	_, err := s.sum(ctx, topic, func(ctx context.Context, at timers.Fenced, name string) (int64, error) {
		return 0, at.Forget(ctx, name)
	})
	return err
}

// RemoveTopic removes the shards of a topic from the registry, unless one of them is in
// use; see [timers.Timers.RemoveTopic]. Those before it have been removed then, and are
// registered again when they are used. The layout stays.
func (s *Store) RemoveTopic(ctx context.Context, topic string) (removed wakebelltype.TopicRemoval, err error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return removed, err
	}
	for _, name := range names {
		r, err := s.timers.RemoveTopic(ctx, name)
		removed.Existed = removed.Existed || r.Existed
		if removed.Use = r.Use; err != nil || r.Use != "" {
			return removed, err
		}
	}
	return removed, nil
}

// Stats returns the statistics of all shards together; see [timers.Timers.Stats].
func (s *Store) Stats(ctx context.Context, topic string) (wakebelltype.Stats, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return wakebelltype.Stats{}, err
	}
	all, err := each(ctx, names, s.timers.Stats)
	if err != nil {
		return wakebelltype.Stats{}, err
	}
	sum := all[0]
	for _, st := range all[1:] {
		addStats(&sum, st)
	}
	return sum, nil
}

// CountDue counts the timers of all shards by their instants; see [timers.Timers.CountDue].
func (s *Store) CountDue(ctx context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return nil, err
	}
	all, err := each(ctx, names, func(ctx context.Context, name string) ([]int64, error) {
		return s.timers.CountDue(ctx, name, from, step, n)
	})
	if err != nil {
		return nil, err
	}
	sum := all[0]
	for _, counts := range all[1:] {
		for i, count := range counts {
			sum[i] += count
		}
	}
	return sum, nil
}

// addStats adds the statistics of another shard.
func addStats(sum *wakebelltype.Stats, st wakebelltype.Stats) {
	sum.Total += st.Total
	sum.Due += st.Due
	sum.Pending += st.Pending
	sum.Retrying += st.Retrying
	sum.Parked += st.Parked
	sum.Leased += st.Leased
	sum.Dead += st.Dead
	sum.Estimated = sum.Estimated || st.Estimated
	if !st.OldestDue.IsZero() && (sum.OldestDue.IsZero() || st.OldestDue.Before(sum.OldestDue)) {
		sum.OldestDue = st.OldestDue
	}
	sum.Lag = max(sum.Lag, st.Lag)
	if st.Paused && (!sum.Paused || st.PausedAt.Before(sum.PausedAt)) {
		sum.Paused, sum.PausedAt, sum.PausedUntil = true, st.PausedAt, st.PausedUntil
	}
}

// Overview reads topics, in their order, with all their shards; see
// [timers.Timers.Overview]. The settings are those of the first shard, the nodes those of
// the shard that has the most.
func (s *Store) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	var names []string
	counts, layouts := make([]int, len(topics)), make([]sharding.Layout, len(topics))
	for i, topic := range topics {
		l, err := s.layout(ctx, topic)
		if err != nil {
			return nil, err
		}
		all := l.All(topic)
		counts[i], layouts[i] = len(all), l
		names = append(names, all...)
	}
	read, err := s.timers.Overview(ctx, names...)
	if err != nil {
		return nil, err
	}
	joined := make([]wakebelltype.Overview, len(topics))
	for i, topic := range topics {
		o := read[0]
		for _, of := range read[1:counts[i]] {
			addStats(&o.Stats, of.Stats)
			o.Nodes = max(o.Nodes, of.Nodes)
			o.Reports = joinReports(o.Reports, of.Reports)
			o.Damage = cmp.Or(o.Damage, of.Damage)
			o.Recent.Add(of.Recent)
			if o.Err == nil {
				o.Err = of.Err
			}
		}
		if counts[i] > 1 { // each shard has a primary of its own
			o.Division = nil
		}
		o.Topic, o.Shards = topic, layouts[i].Count()
		joined[i], read = o, read[counts[i]:]
	}
	return joined, nil
}

// AskNodes asks the nodes of topics for their states; see [timers.Timers.AskNodes]. A node
// answers for all shards, so one is asked, of each layout that a topic has.
func (s *Store) AskNodes(ctx context.Context, topics []string) ([]wakebelltype.NodeAnswer, error) {
	of := map[string]string{}
	for _, topic := range topics {
		l, err := s.layout(ctx, topic)
		if err != nil {
			return nil, err
		}
		for _, n := range append([]int{l.Count()}, l.Others()...) {
			of[sharding.Name(topic, n, 0)] = topic
		}
	}
	answers, err := s.timers.AskNodes(ctx, slices.Collect(maps.Keys(of)))
	joined, known := answers[:0], map[timers.Answerer]bool{}
	for _, a := range answers {
		a.Topic = of[a.Topic]
		if who := timers.AnswererOf(a); !known[who] { // it may have shards of two layouts
			known[who], joined = true, append(joined, a)
		}
	}
	if unasked, ok := errors.AsType[*wakebelltype.UnaskedError](err); ok { // a topic has shards of two layouts
		for i, name := range unasked.Topics {
			unasked.Topics[i] = of[name]
		}
		slices.Sort(unasked.Topics)
		unasked.Topics = slices.Compact(unasked.Topics)
	}
	return joined, err
}

// joinReports joins the reports of nodes about two shards of a topic. Of each node it has
// the one with the breaker that holds back more, and the handlers of both that run for long.
func joinReports(some, more []wakebelltype.NodeReport) []wakebelltype.NodeReport {
	for _, r := range more {
		i, found := slices.BinarySearchFunc(some, r.Node, func(a wakebelltype.NodeReport, node string) int { return strings.Compare(a.Node, node) })
		if !found {
			some = slices.Insert(some, i, r)
			continue
		}
		runs := sharding.JoinRuns(some[i].State.Longest, r.State.Longest)
		if sharding.BreakerRank(r.State.Breaker) > sharding.BreakerRank(some[i].State.Breaker) {
			some[i] = r
		}
		some[i].State.Longest = runs
	}
	return some
}

// Topics reads a page of the registry; see [timers.Timers.Topics]. A topic occurs for each
// of its shards.
func (s *Store) Topics(ctx context.Context, cursor uint64) ([]string, uint64, error) {
	return logical(s.timers.Topics(ctx, cursor))
}

// DiscoverTopics reads a page of the topics that have a timeline; see
// [timers.Timers.DiscoverTopics].
func (s *Store) DiscoverTopics(ctx context.Context, cursor uint64) ([]string, uint64, error) {
	return logical(s.timers.DiscoverTopics(ctx, cursor))
}

// Enlist adds the shards of topics to the registry; see [timers.Timers.Enlist].
func (s *Store) Enlist(ctx context.Context, topics []string) error {
	var physical []string
	for _, topic := range topics {
		names, err := s.all(ctx, topic)
		if err != nil {
			return err
		}
		physical = append(physical, names...)
	}
	return s.timers.Enlist(ctx, physical)
}

func logical(names []string, next uint64, err error) ([]string, uint64, error) {
	for i, name := range names {
		names[i] = sharding.Topic(name)
	}
	return names, next, err
}

// Backlog returns the backlog of all registered topics whose name has the prefix; see
// [timers.Timers.Backlog].
func (s *Store) Backlog(ctx context.Context, prefix string) ([]metrics.Backlog, error) {
	all, err := s.timers.Backlog(ctx, prefix)
	if err != nil {
		return nil, err
	}
	places := map[string]int{}
	joined := all[:0]
	for _, b := range all {
		b.Topic = sharding.Topic(b.Topic)
		at, known := places[b.Topic]
		if !known {
			places[b.Topic] = len(joined)
			joined = append(joined, b)
			continue
		}
		joined[at].Add(b)
	}
	return joined, nil
}

// Repair repairs one shard of a topic after the other; see [timers.Fenced.Repair]. A payload
// belongs to the shard that has it, because the name of a shard has their number. The error
// wraps [wakebelltype.ErrInvalid] while the topic is being resharded: its timers then have a part
// of their data elsewhere.
func (s *Store) Repair(ctx context.Context, topic string, o wakebelltype.RepairOptions) (done wakebelltype.Repaired, err error) {
	_, err = routed(ctx, s, topic, func(l sharding.Layout) (bool, error) {
		if l.Moves() {
			return false, s.waitsFor(ctx, topic, "it is being resharded; repair it when that has ended")
		}
		if !o.Apply { // what another layout has counted is counted again
			done = wakebelltype.Repaired{}
		}
		for _, name := range l.Names(topic) {
			part, err := s.at(l).Repair(ctx, name, o)
			done.Add(part)
			if err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return done, err
}

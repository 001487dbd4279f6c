package timers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/rendezvous"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/records"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// overviewPage is how many topics one round trip reads.
const overviewPage = 100

// Overview reads topics, in their order, 100 in a round trip after one that asks the time.
// On a Cluster another one counts the nodes. If part of a topic
// cannot be read, its Err reports it and the other topics are unaffected. The error
// of the call is that of ctx, or of a Redis that answers for none of 100 topics.
func (s *Timers) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return nil, err
		}
	}
	all := make([]wakebelltype.Overview, 0, len(topics))
	answered := func(o wakebelltype.Overview) bool { return !errors.Is(o.Err, exchange.ErrUnavailable) }
	if len(topics) == 0 {
		return all, nil
	}
	now := s.RDB.Time(ctx).Val() // an error is that of what is read below, too
	for asked := range slices.Chunk(topics, overviewPage) {
		var page []wakebelltype.Overview
		err := s.Again(ctx, func() error {
			page = s.overviewPage(ctx, asked, now)
			if !slices.ContainsFunc(page, answered) {
				return page[0].Err
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	return all, nil
}

func (s *Timers) overviewPage(ctx context.Context, topics []string, now time.Time) []wakebelltype.Overview {
	pipe := s.RDB.Pipeline()
	stats := make([]*redis.Cmd, len(topics))
	controls := make([]*redis.MapStringStringCmd, len(topics))
	announced := make([]*redis.StringSliceCmd, len(topics))
	reports := make([]*redis.MapStringStringCmd, len(topics))
	counts := make([]*redis.SliceCmd, len(topics))
	recent := records.RecentCounts(now, int(wakebelltype.RecentFor/time.Minute), "shfdnlmq")
	for i, topic := range topics {
		k := s.keys.Of(topic)
		stats[i] = statsScript.EvalSha(ctx, pipe, damageKeys(k), statsSample)
		controls[i] = pipe.HGetAll(ctx, k.Control)
		announced[i] = pipe.ZRange(ctx, k.Nodes, 0, mostAnnounced-1)
		reports[i] = pipe.HGetAll(ctx, k.Reports)
		counts[i] = pipe.HMGet(ctx, k.Counts, recent.Fields...)
	}
	var subscribed *redis.MapStringIntCmd
	if !s.OnCluster() {
		subscribed = pipe.PubSubNumSub(ctx, s.hintChannels(topics)...)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	page := make([]wakebelltype.Overview, len(topics))
	for i, topic := range topics {
		o := wakebelltype.Overview{Topic: topic}
		// A control hash of another type fails both; the first error reports it.
		if o.Control, o.Err = s.readControlReply(ctx, s.keys.Of(topic).Control, controls[i]); o.Err != nil {
			o.Control = wakebelltype.Control{}
		}
		var err error
		if o.Stats, o.Damage, err = s.readStatsReply(ctx, topic, stats[i]); err != nil && o.Err == nil {
			o.Err = fmt.Errorf("stats of %q: %w", topic, err)
		}
		o.Division = divisionOf(topic, announced[i].Val()) // without the right to read it, it is unknown
		o.Reports = reportsOf(reports[i].Val(), now)
		o.Recent = sumOf(recent.Of(counts[i].Val()))
		page[i] = o
	}
	s.countNodes(ctx, page, topics, subscribed)
	return page
}

// sumOf adds up the counts of the steps.
func sumOf(t wakebelltype.Throughput) wakebelltype.ThroughputCounts {
	sum := wakebelltype.ThroughputCounts{At: t.Points[0].At}
	for _, p := range t.Points {
		sum.Add(p)
	}
	return sum
}

// mostAnnounced bounds the announced nodes of a topic that an overview reads.
const mostAnnounced = 100

// divisionOf returns the announced nodes of a topic in their order; none if there is one,
// which polls as if there were no division.
func divisionOf(topic string, announced []string) []string {
	if len(announced) < 2 {
		return nil
	}
	ranked := make([]string, len(announced))
	for _, node := range announced {
		ranked[rendezvous.Rank(topic, node, announced)] = node
	}
	return ranked
}

// countNodes sets the number of nodes of each topic. Without a reply it asks all
// masters of a Cluster.
func (s *Timers) countNodes(ctx context.Context, page []wakebelltype.Overview, topics []string, reply *redis.MapStringIntCmd) {
	var counts []int
	var err error
	if reply == nil {
		counts, err = s.nodesOf(ctx, topics...)
	} else {
		counts, err = addSubscribers(make([]int, len(topics)), s.hintChannels(topics), reply)
	}
	for i := range page {
		if page[i].Nodes = -1; err == nil {
			page[i].Nodes = counts[i]
		}
	}
}

// nodesOf returns the number of nodes that subscribe to the hints of each topic.
func (s *Timers) nodesOf(ctx context.Context, topics ...string) (counts []int, err error) {
	return s.Subscribers(ctx, s.hintChannels(topics))
}

// Subscribers returns the number of subscribers of each channel, on any master of a
// Cluster.
func (s *Timers) Subscribers(ctx context.Context, channels []string) (counts []int, err error) {
	servers, err := s.Nodes(ctx)
	counts = make([]int, len(channels))
	for _, server := range servers {
		if err == nil {
			counts, err = addSubscribers(counts, channels, server.PubSubNumSub(ctx, channels...))
		}
	}
	return counts, scripts.Wrap(ctx, nil, err)
}

// addSubscribers adds the subscribers that a reply reports.
func addSubscribers(counts []int, channels []string, reply *redis.MapStringIntCmd) ([]int, error) {
	found, err := reply.Result()
	for i, channel := range channels {
		counts[i] += int(found[channel])
	}
	return counts, err
}

func (s *Timers) hintChannels(topics []string) []string {
	channels := make([]string, len(topics))
	for i, topic := range topics {
		channels[i] = s.keys.Of(topic).Hint
	}
	return channels
}

// readStatsReply retries if the server did not know the script, and without the payloads if
// the user has no right to them: then no damage is known.
func (s *Timers) readStatsReply(ctx context.Context, topic string, reply *redis.Cmd) (st wakebelltype.Stats, damage string, err error) {
	k := s.keys.Of(topic)
	list, err := reply.Slice()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		list, err = s.RunList(ctx, statsValues, statsScript, damageKeys(k), statsSample)
	} else {
		err = scripts.Wrap(ctx, damageKeys(k), err)
	}
	if scripts.IsDenied(err) {
		list, err = s.RunList(ctx, statsValues, statsScript, statsKeys(k), statsSample)
	}
	if err != nil {
		return st, "", err
	}
	st, err = readStats(list)
	return st, damageOf(list, k), err
}

// behindPage is how many topics one round trip of Behind reads.
const behindPage = 200

// Behind is the delay in the delivery of a topic.
type Behind struct {
	Topic string
	By    time.Duration // how long the first unclaimed timer has been due; 0: none is due
	Err   error         // of this topic alone
}

// Behind reads how far topics are behind, with one cheap command for each. Its
// error concerns Redis as a whole.
func (s *Timers) Behind(ctx context.Context, topics []string) ([]Behind, error) {
	now, err := s.RDB.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask the time: %w", scripts.Wrap(ctx, nil, err))
	}
	all := make([]Behind, 0, len(topics))
	for part := range slices.Chunk(topics, behindPage) {
		pipe := s.RDB.Pipeline()
		heads := make([]*redis.ZSliceCmd, len(part))
		for i, topic := range part {
			heads[i] = pipe.ZRangeWithScores(ctx, s.keys.Of(topic).Timeline, 0, 0)
		}
		_, _ = pipe.Exec(ctx) // each reply has its own error
		for i, topic := range part {
			all = append(all, behind(ctx, topic, heads[i], now))
		}
	}
	return all, nil
}

// behind reads the head of a topic. A timer that a handler has is leased, so its
// score lies in the future.
func behind(ctx context.Context, topic string, head *redis.ZSliceCmd, now time.Time) Behind {
	first, err := head.Result()
	b := Behind{Topic: topic, Err: scripts.Wrap(ctx, nil, err)}
	if len(first) > 0 && first[0].Score > 0 { // the claim corrects a score of -inf
		b.By = max(now.Sub(scripts.Instant(first[0].Score)), 0)
	}
	return b
}

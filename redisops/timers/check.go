package timers

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Check verifies at startup that Redis can store these topics: it answers, is at
// least version 6.2, and in a Cluster keeps all keys of a topic in one slot. It
// logs a warning for an eviction policy that may drop timers. Errors wrap
// [exchange.ErrUnavailable] or [wakebelltype.ErrUnsupported].
func (s *Timers) Check(ctx context.Context, topics []string) error {
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return err
		}
	}
	if err := s.RDB.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("check: %w", scripts.Wrap(ctx, nil, err))
	}
	if err := s.CheckVersion(ctx, topics); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	s.checkEviction(ctx)
	if !s.Clustered(ctx) {
		return nil
	}
	for _, topic := range topics {
		if err := s.CheckSlots(topic); err != nil {
			return err
		}
	}
	s.learnShards(ctx)
	return nil
}

// checkEviction logs a warning for a Redis that drops timers when its memory is
// full. It logs nothing if the user has no right to INFO.
func (s *Timers) checkEviction(ctx context.Context) {
	servers, err := s.Nodes(ctx)
	if err != nil {
		return
	}
	for _, server := range servers {
		info, err := server.Info(ctx, "memory").Result()
		if err != nil {
			continue
		}
		_, policy, found := strings.Cut(info, "maxmemory_policy:")
		policy, _, _ = strings.Cut(policy, "\r\n")
		if found && policy != "noeviction" {
			s.logger().WarnContext(ctx, "redis may evict timers when its memory is full; set maxmemory-policy to noeviction",
				"maxmemory_policy", policy)
			return
		}
	}
}

// learnShards stores which server of a Cluster has which slots. Without the right
// to CLUSTER SLOTS, all slots count as one shard.
func (s *Timers) learnShards(ctx context.Context) {
	shards, err := s.RDB.ClusterSlots(ctx).Result()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards = shards
}

// CheckVersion sends ZMSCORE, a command that came with Redis 6.2 and needs fewer
// rights than INFO, for a key that the user may read: a topic's timeline. Without
// topics the user may have no right to the key; the permission error then shows
// that the server knows the command.
func (s *Timers) CheckVersion(ctx context.Context, topics []string) error {
	topic := "check"
	if len(topics) > 0 {
		topic = topics[0]
	}
	err := s.RDB.ZMScore(ctx, s.keys.Of(topic).Timeline, "probe").Err()
	switch {
	case err == nil, len(topics) == 0 && redis.IsPermissionError(err):
		return nil
	case strings.Contains(err.Error(), "unknown command"):
		return fmt.Errorf("%w: it is older than version 6.2", wakebelltype.ErrUnsupported)
	default:
		return scripts.Wrap(ctx, nil, err)
	}
}

// CheckSlots reports as an error that a Cluster has not all keys of a topic in one
// slot.
func (s *Timers) CheckSlots(topic string) error {
	k := s.keys.Of(topic)
	for _, key := range []string{k.Payloads, k.Leases, k.Dead, k.Stream("x", 0), k.Hint, k.Flow, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, k.KeyTurns, k.Control, k.Mark("x"), k.Counts, k.History, k.Nodes, k.Reports, k.Layout()} {
		if a, b := layout.SlotOf(k.Timeline), layout.SlotOf(key); a != b {
			hint := "set HashTag"
			if s.keys.braces(topic) {
				hint = "rename the topic, its braces break the hash tag"
			}
			return fmt.Errorf("check: %w: topic %q: %q is in slot %d of the Cluster and %q in %d; %s",
				wakebelltype.ErrUnsupported, topic, k.Timeline, a, key, b, hint)
		}
	}
	return nil
}

// ShardOf returns the address of the server that has a key, as of the last Check.
func (s *Timers) ShardOf(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shards) == 0 {
		return ""
	}
	slot := layout.SlotOf(key)
	for _, shard := range s.shards {
		if shard.Start <= slot && slot <= shard.End && len(shard.Nodes) > 0 {
			return shard.Nodes[0].Addr
		}
	}
	return ""
}

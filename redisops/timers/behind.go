package timers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// topicsAtOnce is how many topics one round trip of Behind asks for.
const topicsAtOnce = 200

// Behind is how far the delivery of a topic is behind.
type Behind struct {
	Topic string
	By    time.Duration // for how long the first timer has been due that nobody has; 0: none is
	Err   error         // of this topic alone
}

// Behind asks how far topics are behind, at one cheap command each. Its error is
// of Redis as a whole.
func (s *Timers) Behind(ctx context.Context, topics []string) ([]Behind, error) {
	now, err := s.RDB.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask the time: %w", scripts.Wrap(ctx, nil, err))
	}
	all := make([]Behind, 0, len(topics))
	for part := range slices.Chunk(topics, topicsAtOnce) {
		pipe := s.RDB.Pipeline()
		heads := make([]*redis.ZSliceCmd, len(part))
		for i, topic := range part {
			heads[i] = pipe.ZRangeWithScores(ctx, s.keys.of(topic).timeline, 0, 0)
		}
		_, _ = pipe.Exec(ctx) // each reply has its own error
		for i, topic := range part {
			all = append(all, behind(ctx, topic, heads[i], now))
		}
	}
	return all, nil
}

// behind reads the head of a topic. What a handler has is leased, and its score
// lies ahead.
func behind(ctx context.Context, topic string, head *redis.ZSliceCmd, now time.Time) Behind {
	first, err := head.Result()
	b := Behind{Topic: topic, Err: scripts.Wrap(ctx, nil, err)}
	if len(first) > 0 && first[0].Score > 0 { // one of -inf is put right when it is claimed
		b.By = max(now.Sub(scripts.Instant(first[0].Score)), 0)
	}
	return b
}

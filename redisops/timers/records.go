package timers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/records"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// records returns the store of what is recorded of a topic.
func (s *Timers) records(topic string) (records.Store, error) {
	k := s.keys.Of(topic)
	return records.Store{Runner: s.Runner, Name: topic, Counts: k.Counts, History: k.History}, layout.CheckTopic(topic)
}

// WriteCounts adds what an incarnation of a node has done on a topic. Call is the
// number of the call; a repeated call with the same number is counted once. At and
// Scheduled of the counts are ignored.
func (s *Timers) WriteCounts(ctx context.Context, topic, incarnation string, call uint64, c wakebelltype.ThroughputCounts) error {
	r, err := s.records(topic)
	if err != nil {
		return err
	}
	return r.WriteCounts(ctx, s.keys.Of(topic).counted(incarnation), call, c)
}

// Throughput returns the counts of a topic since a duration ago: by minute for up to 24
// hours, by day for up to 90 days. The last step is the present one.
func (s *Timers) Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	r, err := s.records(topic)
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return r.Throughput(ctx, since)
}

// Recent is what happened on a topic in the last minutes.
type Recent struct {
	Throughput wakebelltype.Throughput
	Err        error
}

// Recent returns how many timers of topics became dead letters in each of the last minutes, 1
// to 60, in the order of the topics, with two round trips.
func (s *Timers) Recent(ctx context.Context, minutes int, topics ...string) ([]Recent, error) {
	now, err := s.RDB.Time(ctx).Result()
	if err != nil {
		return nil, scripts.Wrap(ctx, nil, err)
	}
	of := records.RecentCounts(now, minutes, "d")
	pipe := s.RDB.Pipeline()
	replies := make([]*redis.SliceCmd, len(topics))
	for i, topic := range topics {
		replies[i] = pipe.HMGet(ctx, s.keys.Of(topic).Counts, of.Fields...)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	all := make([]Recent, len(topics))
	for i, reply := range replies {
		if err := reply.Err(); err != nil {
			all[i].Err = fmt.Errorf("counts of %q: %w", topics[i], scripts.Wrap(ctx, []string{s.keys.Of(topics[i]).Counts}, err))
			continue
		}
		all[i].Throughput = of.Of(reply.Val())
	}
	return all, nil
}

// WriteHistory adds attempts of one node to the history of a topic, at most
// [records.MaxHistoryBatch].
func (s *Timers) WriteHistory(ctx context.Context, topic, node string, attempts []wakebelltype.Attempt) error {
	r, err := s.records(topic)
	if err != nil {
		return err
	}
	return r.WriteHistory(ctx, node, attempts)
}

// History reads a page of the attempts; see [records.Store.ReadHistory].
func (s *Timers) History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, after string, limit int) (attempts []wakebelltype.Attempt, next string, err error) {
	r, err := s.records(topic)
	if err != nil {
		return nil, "", err
	}
	return r.ReadHistory(ctx, f, after, limit)
}

// LastHistory returns the newest n of the attempts that the filter selects, 1 to
// 1,000, the oldest of them first.
func (s *Timers) LastHistory(ctx context.Context, topic string, f wakebelltype.HistoryFilter, n int) ([]wakebelltype.Attempt, error) {
	r, err := s.records(topic)
	if err != nil {
		return nil, err
	}
	return r.LastHistory(ctx, f, n)
}

// Counted runs a call that counts the timers that it stores, unless counts are switched
// off. If the user has no right to the counts, it runs the call again without them.
func (s *Timers) Counted(ctx context.Context, call func(counting bool) error) error {
	return s.counted(ctx, &s.uncounted, s.keys.Counts, call)
}

// QueueCounted does for the messages of a queue what Counted does for timers; key has
// their counts.
func (s *Timers) QueueCounted(ctx context.Context, key string, call func(counting bool) error) error {
	return s.counted(ctx, &s.queuesUncounted, key, call)
}

func (s *Timers) counted(ctx context.Context, denied *atomic.Bool, key string, call func(counting bool) error) error {
	counting := !s.NoCounts && !denied.Load()
	err := call(counting)
	if !counting || !scripts.IsDenied(err) {
		return err
	}
	if err = call(false); err != nil {
		return err // another right is missing
	}
	if !denied.Swap(true) {
		s.warnUncounted(ctx, key)
	}
	return nil
}

func (s *Timers) warnUncounted(ctx context.Context, key string) {
	s.logger().WarnContext(ctx, "scheduled timers are not counted: the Redis user lacks the right to the key", "key", key)
}

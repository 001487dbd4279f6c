package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Timers move from one physical topic to another in three steps, because the two may be on
// different servers: a batch is taken out of the topic into its outbox, stored where it
// belongs, and dropped from the outbox. Each step is one script. A batch that was stored
// leaves its token there, so anyone may repeat the last two steps at any time.

// historyLife is how long the history of a topic is stored after its last entry.
const historyLife = 7 * 24 * time.Hour

// deliver stores a batch of an outbox where its items belong, and drops it.
func (s *Store) deliver(ctx context.Context, topic string, l sharding.Layout, from, token, text string) error {
	return s.toShards(topic, l).deliver(ctx, from, token, text)
}

// transport says through which outbox timers leave the physical topics of a topic, and
// where they arrive.
type transport struct {
	from, to *Store
	topic    string // in which they arrive
	layout   sharding.Layout
	fence    *timers.Fence // of the physical topics that they leave; that of the layout is where they arrive

	move    string // to another Redis: its name; empty: timers move to other shards
	outbox  func(timers.TopicKeys) (batches, index string)
	arrived func(timers.TopicKeys) string // the key with the tokens of batches
	keep    time.Duration                 // for how long they are remembered

	// before is called before a batch is stored; nil: nothing is.
	before func(ctx context.Context, c content) error

	// Timers without a key that become due within margin, or that became due within
	// grace, are not taken.
	margin, grace time.Duration

	bounds  stepBounds
	offsets *sync.Map // by physical topic: how many timers at the end of it the last step has passed over
}

// stepBounds bounds what one script takes.
type stepBounds struct {
	timers int // and entries of streams
	bytes  int // of their payloads, unless one has more
}

// arrivedLife is how long the tokens are remembered of batches that have arrived in a
// shard. Nodes deliver what a process has left behind much sooner.
const arrivedLife = 24 * time.Hour

// toShards is the transport of timers that move to other shards.
func (s *Store) toShards(topic string, l sharding.Layout) *transport {
	return &transport{
		from: s, to: s, topic: topic, layout: l, fence: fenceOf(l), keep: arrivedLife, margin: s.margin,
		bounds: s.bounds, offsets: &s.offsets,
		outbox:  func(k timers.TopicKeys) (string, string) { return k.Moving(), k.Taken() },
		arrived: timers.TopicKeys.Arrived,
	}
}

// deliver stores a batch where its items belong, and drops it.
func (t *transport) deliver(ctx context.Context, from, token, text string) error {
	c, err := readBatch(text)
	if err != nil {
		return fmt.Errorf("outbox of %q: %w", from, err)
	}
	if t.before != nil {
		if err := t.before(ctx, c); err != nil {
			return fmt.Errorf("move timers of %q: %w", from, err)
		}
	}
	parts, index := t.to.spread(t.topic, t.layout, c)
	if _, err = each(ctx, slices.Sorted(maps.Keys(parts)), func(ctx context.Context, name string) (string, error) {
		return t.arrive(ctx, c, name, token+" "+from, parts[name])
	}); err != nil {
		return fmt.Errorf("move timers of %q: %w", from, err)
	}
	batches, taken := t.outbox(t.from.timers.Keys().Of(from))
	if _, err = t.from.timers.RunText(ctx, dropScript, []string{batches, taken}, append([]any{token}, index...)...); err != nil {
		return fmt.Errorf("outbox of %q: %w", from, err)
	}
	return nil
}

// arrive stores a part of a batch in a physical topic, unless it was stored before.
func (t *transport) arrive(ctx context.Context, c content, name, token string, items []any) (stored string, err error) {
	store := t.to.timers
	k, keep := store.Keys().Of(name), t.keep.Milliseconds()
	var script *redis.Script
	var keys []string
	args := []any{token, keep}
	switch c.kind {
	case ofTimers, ofPart:
		more := "0"
		if c.more {
			more = "1"
		}
		args = append(args, c.part, more)
		script, keys = arriveScript, []string{k.Timeline, k.Payloads, k.Leases, k.Hint, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, t.arrived(k)}
	case ofDead:
		script, keys, args = arriveEntriesScript, []string{k.Dead, t.arrived(k)}, append(args, 0)
	case ofHistory:
		script, keys, args = arriveEntriesScript, []string{k.History, t.arrived(k)}, append(args, historyLife.Milliseconds())
	case ofCounts:
		script, keys = arriveCountsScript, []string{k.Counts, t.arrived(k)}
	default:
		return "", errBatch
	}
	keys, args = scripts.WithGuards(fenceOf(t.layout).Guards(store.Keys(), name), keys, append(args, items...))
	stored, err = store.RunText(ctx, script, keys, args...)
	if err == nil {
		store.Remember(ctx, name)
	}
	return stored, err
}

// deliverAll delivers all batches in the outbox of a physical topic.
func (s *Store) deliverAll(ctx context.Context, topic string, l sharding.Layout, from string) error {
	return s.toShards(topic, l).deliverAll(ctx, from)
}

// deliverAll delivers all batches in the outbox of a physical topic.
func (t *transport) deliverAll(ctx context.Context, from string) error {
	batches, err := t.pending(ctx, from)
	if err != nil {
		return err
	}
	for _, token := range slices.Sorted(maps.Keys(batches)) { // the first one before the others
		if err := t.deliver(ctx, from, token, batches[token]); err != nil {
			return err
		}
	}
	return nil
}

// outbox returns the batches that move from a shard to others, by their tokens.
func (s *Store) outbox(ctx context.Context, from string) (batches map[string]string, err error) {
	return s.toShards("", sharding.Layout{}).pending(ctx, from)
}

// pending returns the batches in the outbox of a physical topic by their tokens.
func (t *transport) pending(ctx context.Context, from string) (batches map[string]string, err error) {
	store := t.from.timers
	key, _ := t.outbox(store.Keys().Of(from))
	err = store.Again(ctx, func() error {
		batches, err = store.RDB.HGetAll(ctx, key).Result()
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return nil, fmt.Errorf("outbox of %q: %w", from, err)
	}
	return batches, nil
}

// settleTaken delivers the outbox of a physical topic if a timer is in it.
func (s *Store) settleTaken(ctx context.Context, topic string, l sharding.Layout, from string, ids ...string) error {
	key := s.timers.Keys().Of(from).Taken()
	fields := make([]string, len(ids))
	for i, id := range ids {
		fields[i] = "i" + id
	}
	var found []any
	err := s.timers.Again(ctx, func() (err error) {
		found, err = s.timers.RDB.HMGet(ctx, key, fields...).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return fmt.Errorf("outbox of %q: %w", from, err)
	}
	if slices.ContainsFunc(found, func(token any) bool { return token != nil }) {
		return s.deliverAll(ctx, topic, l, from)
	}
	return nil
}

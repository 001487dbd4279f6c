package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// The kinds of batches, with which their texts begin.
const (
	ofTimers  = "t"
	ofDead    = "d"
	ofHistory = "h"
	ofCounts  = "c"
)

const (
	timerFields = 8 // in a batch: id, score, payload, record, key, place, held, rate
	keyField    = 4
)

// historyLife is how long the history of a topic is stored after its last entry.
const historyLife = 7 * 24 * time.Hour

var errBatch = fmt.Errorf("%w: a batch of an outbox is malformed", scripts.ErrReply)

// readBatch reads the content of a batch: its kind, and the fields of its items.
func readBatch(text string) (kind string, items [][]string, err error) {
	if text == "" {
		return "", nil, errBatch
	}
	kind, text = text[:1], text[1:]
	for text != "" {
		head, rest, found := strings.Cut(text, "\n")
		if !found {
			return "", nil, errBatch
		}
		var item []string
		for length := range strings.SplitSeq(head, " ") {
			n, err := strconv.Atoi(length)
			if err != nil || n < 0 || n > len(rest) {
				return "", nil, errBatch
			}
			item = append(item, rest[:n])
			rest = rest[n:]
		}
		if kind == ofTimers && len(item) != timerFields {
			return "", nil, errBatch
		}
		items, text = append(items, item), rest
	}
	return kind, items, nil
}

// spread are the parts of a batch by the physical topics in which they belong, as
// arguments, and the fields that its timers have in the index of the outbox.
func (s *Store) spread(topic string, l sharding.Layout, kind string, items [][]string) (parts map[string][]any, index []any) {
	parts = map[string][]any{}
	keys := map[string]bool{}
	for _, item := range items {
		id, key := item[0], ""
		switch kind {
		case ofCounts: // of which the sum matters
			id = ""
		case ofTimers:
			key = item[keyField]
			index = append(index, "i"+id)
			if key != "" && !keys[key] {
				keys[key] = true
				index = append(index, "k"+key)
			}
		default:
			id, key = fieldOf(item, "id"), fieldOf(item, "key")
		}
		name := l.Shard(topic, id, key)
		if kind == ofDead || kind == ofHistory {
			parts[name] = append(parts[name], len(item))
		}
		for _, field := range item {
			parts[name] = append(parts[name], field)
		}
	}
	return parts, index
}

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
	before func(ctx context.Context, kind string, items [][]string) error

	// Timers without a key that become due within margin, or that became due within
	// grace, are not taken.
	margin, grace time.Duration
}

// arrivedLife is how long the tokens are remembered of batches that have arrived in a
// shard. Nodes deliver what a process has left behind much sooner.
const arrivedLife = 24 * time.Hour

// toShards is the transport of timers that move to other shards.
func (s *Store) toShards(topic string, l sharding.Layout) *transport {
	return &transport{
		from: s, to: s, topic: topic, layout: l, fence: fenceOf(l), keep: arrivedLife, margin: moveMargin,
		outbox:  func(k timers.TopicKeys) (string, string) { return k.Moving(), k.Taken() },
		arrived: timers.TopicKeys.Arrived,
	}
}

// deliver stores a batch where its items belong, and drops it.
func (t *transport) deliver(ctx context.Context, from, token, text string) error {
	kind, items, err := readBatch(text)
	if err != nil {
		return fmt.Errorf("outbox of %q: %w", from, err)
	}
	if t.before != nil {
		if err := t.before(ctx, kind, items); err != nil {
			return fmt.Errorf("move timers of %q: %w", from, err)
		}
	}
	parts, index := t.to.spread(t.topic, t.layout, kind, items)
	if _, err = each(ctx, slices.Sorted(maps.Keys(parts)), func(ctx context.Context, name string) (string, error) {
		return t.arrive(ctx, kind, name, token+" "+from, parts[name])
	}); err != nil {
		return fmt.Errorf("move timers of %q: %w", from, err)
	}
	batches, taken := t.outbox(t.from.timers.Keys().Of(from))
	if _, err = t.from.timers.RunText(ctx, dropScript, []string{batches, taken}, append([]any{token}, index...)...); err != nil {
		return fmt.Errorf("outbox of %q: %w", from, err)
	}
	return nil
}

// fieldOf returns the value of a field of an entry of a stream.
func fieldOf(entry []string, name string) string {
	for i := 0; i+1 < len(entry); i += 2 {
		if entry[i] == name {
			return entry[i+1]
		}
	}
	return ""
}

// arrive stores a part of a batch in a physical topic, unless it was stored before.
func (t *transport) arrive(ctx context.Context, kind, name, token string, items []any) (stored string, err error) {
	store := t.to.timers
	k, keep := store.Keys().Of(name), t.keep.Milliseconds()
	var script *redis.Script
	var keys []string
	args := []any{token, keep}
	switch kind {
	case ofTimers:
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
	for token, text := range batches {
		if err := t.deliver(ctx, from, token, text); err != nil {
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

// Deliver delivers all outboxes of a topic whose timers move.
func (s *Store) Deliver(ctx context.Context, topic string) error {
	_, err := routed(ctx, s, topic, func(l sharding.Layout) ([]int, error) {
		if !l.Moves() {
			return nil, nil
		}
		return each(ctx, sharding.Names(topic, l.From), func(ctx context.Context, name string) (int, error) {
			return 0, s.deliverAll(ctx, topic, l, name)
		})
	})
	return err
}

// abandonedAfter is the age from which on a batch in an outbox was left behind by a process
// that has ended.
const abandonedAfter = 300 * time.Millisecond

// DeliverAbandoned delivers the batches that a process has left behind, and reports
// whether timers of the topic move. Nodes call it five times a second then.
func (s *Store) DeliverAbandoned(ctx context.Context, topic string) (moves bool, err error) {
	return routed(ctx, s, topic, func(l sharding.Layout) (bool, error) {
		if !l.Moves() {
			return l.Moving, nil // of a topic that was divided without timers: it settles soon
		}
		return true, s.deliverAbandoned(ctx, topic, l)
	})
}

func (s *Store) deliverAbandoned(ctx context.Context, topic string, l sharding.Layout) error {
	_, err := each(ctx, sharding.Names(topic, l.From), func(ctx context.Context, name string) (int, error) {
		batches, err := s.outbox(ctx, name)
		if err != nil || len(batches) == 0 {
			return 0, err
		}
		now, err := s.now(ctx)
		if err != nil {
			return 0, err
		}
		for token, text := range batches {
			micros, _, _ := strings.Cut(token, "-")
			taken, _ := strconv.ParseInt(micros, 10, 64)
			if now.Sub(time.UnixMicro(taken)) < abandonedAfter {
				continue
			}
			if err := s.deliver(ctx, topic, l, name, token, text); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	return err
}

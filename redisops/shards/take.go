package shards

import (
	"context"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// step makes one step in each of some physical topics, and returns how many timers and
// entries it has moved.
func (t *transport) step(ctx context.Context, names []string) (moved int64, err error) {
	counts, err := each(ctx, names, func(ctx context.Context, from string) (int64, error) {
		if err := t.deliverAll(ctx, from); err != nil {
			return 0, err
		}
		n, err := t.moveTimers(ctx, from)
		if n > 0 || err != nil {
			return n, err
		}
		k := t.from.timers.Keys().Of(from)
		if n, err = t.moveEntries(ctx, from, k.Dead, ofDead); n > 0 || err != nil {
			return n, err
		}
		if n, err = t.moveEntries(ctx, from, k.History, ofHistory); n > 0 || err != nil {
			return n, err
		}
		return 0, t.moveCounts(ctx, from)
	})
	for _, n := range counts {
		moved += n
	}
	return moved, err
}

// moveTimers moves timers of a physical topic, at most about a page of them.
func (t *transport) moveTimers(ctx context.Context, from string) (int64, error) {
	taken, token, batch, err := t.take(ctx, from)
	if taken == 0 || err != nil {
		return 0, err
	}
	return taken, t.deliver(ctx, from, token, batch)
}

// take takes a batch of timers out of a shard.
func (s *Store) take(ctx context.Context, from string) (taken int64, token, batch string, err error) {
	return s.toShards("", sharding.Layout{}).take(ctx, from)
}

// take takes a batch of timers out of a physical topic.
func (t *transport) take(ctx context.Context, from string) (taken int64, token, batch string, err error) {
	k := t.from.timers.Keys().Of(from)
	batches, index := t.outbox(k)
	keys := []string{k.Timeline, k.Payloads, k.Leases, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, batches, index, k.Pins()}
	for offset := 0; ; {
		reply, err := t.from.timers.RunList(ctx, 4, takeScript, keys, movePage, offset, t.margin.Microseconds(), t.grace.Microseconds(), moveKey, moveBytes)
		if err != nil {
			return 0, "", "", fmt.Errorf("move timers of %q: %w", from, err)
		}
		texts, err := scripts.Texts(reply)
		if err != nil {
			return 0, "", "", err
		}
		taken, _ := strconv.ParseInt(texts[0], 10, 64)
		stay, _ := strconv.Atoi(texts[1])
		if taken > 0 || stay < movePage {
			return taken, texts[2], texts[3], nil
		}
		offset += stay
	}
}

// moveEntries moves entries of a stream of a physical topic.
func (t *transport) moveEntries(ctx context.Context, from, stream, kind string) (int64, error) {
	batches, index := t.outbox(t.from.timers.Keys().Of(from))
	reply, err := t.from.timers.RunList(ctx, 3, takeEntriesScript, []string{stream, batches, index}, kind, movePage)
	if err != nil {
		return 0, fmt.Errorf("move entries of %q: %w", stream, err)
	}
	texts, err := scripts.Texts(reply)
	if err != nil || texts[0] == "0" {
		return 0, err
	}
	taken, _ := strconv.ParseInt(texts[0], 10, 64)
	return taken, t.deliver(ctx, from, texts[1], texts[2])
}

// moveCounts moves the counts of a physical topic. Its pollers write more of them while they
// run.
func (t *transport) moveCounts(ctx context.Context, from string) error {
	k := t.from.timers.Keys().Of(from)
	batches, index := t.outbox(k)
	reply, err := t.from.timers.RunList(ctx, 3, takeCountsScript, []string{k.Counts, batches, index}, ofCounts)
	if err != nil {
		return fmt.Errorf("move the counts of %q: %w", from, err)
	}
	texts, err := scripts.Texts(reply)
	if err != nil || texts[0] == "0" {
		return err
	}
	return t.deliver(ctx, from, texts[1], texts[2])
}

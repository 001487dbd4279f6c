package shards

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
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

// take takes a batch of timers out of a physical topic.
func (t *transport) take(ctx context.Context, from string) (taken int64, token, batch string, err error) {
	k := t.from.timers.Keys().Of(from)
	batches, index := t.outbox(k)
	keys := []string{k.Timeline, k.Payloads, k.Leases, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, batches, index, k.Pins()}
	for offset := 0; ; {
		taken, texts, err := t.runTake(ctx, from, 4, takeScript, keys, movePage, offset, t.margin.Microseconds(), t.grace.Microseconds(), moveKey, moveBytes)
		if err != nil {
			return 0, "", "", fmt.Errorf("move timers of %q: %w", from, err)
		}
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
	taken, texts, err := t.runTake(ctx, from, 3, takeEntriesScript, []string{stream, batches, index}, kind, movePage, moveBytes)
	if err != nil {
		return 0, fmt.Errorf("move entries of %q: %w", stream, err)
	}
	if taken == 0 {
		return 0, nil
	}
	return taken, t.deliver(ctx, from, texts[1], texts[2])
}

// moveCounts moves the counts of a physical topic. Its pollers write more of them while they
// run.
func (t *transport) moveCounts(ctx context.Context, from string) error {
	k := t.from.timers.Keys().Of(from)
	batches, index := t.outbox(k)
	taken, texts, err := t.runTake(ctx, from, 3, takeCountsScript, []string{k.Counts, batches, index}, ofCounts)
	if err != nil {
		return fmt.Errorf("move the counts of %q: %w", from, err)
	}
	if taken == 0 {
		return nil
	}
	return t.deliver(ctx, from, texts[1], texts[2])
}

// errMoveEnded says that another process has ended the move, so that nothing may leave the
// source any more: a later move would not know whether it has arrived.
var errMoveEnded = fmt.Errorf("%w: another process has ended the move; repeat the call if timers have come since", redisops.ErrInvalid)

// runTake runs a script that takes a batch, whose answer has n texts, the first of which is
// how many timers or entries were taken.
func (t *transport) runTake(ctx context.Context, from string, n int, script *redis.Script, keys []string, args ...any) (taken int64, texts []string, err error) {
	keys, args = scripts.WithGuards(t.fence.Guards(t.from.timers.Keys(), from), keys, append([]any{t.move}, args...))
	reply, err := t.from.timers.RunList(ctx, n, script, keys, args...)
	if err != nil {
		return 0, nil, err
	}
	if texts, err = scripts.Texts(reply); err != nil {
		return 0, nil, err
	}
	if texts[0] == "-" {
		return 0, nil, errMoveEnded
	}
	taken, err = strconv.ParseInt(texts[0], 10, 64)
	return taken, texts, err
}

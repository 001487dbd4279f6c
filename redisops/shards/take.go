package shards

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// step makes one step in each of some physical topics, and returns how many timers and
// entries it has moved, and whether it has looked at the last timers of all of them.
func (t *transport) step(ctx context.Context, names []string) (moved int64, ended bool, err error) {
	type result struct {
		moved int64
		ended bool
	}
	results, err := each(ctx, names, func(ctx context.Context, from string) (r result, err error) {
		if err := t.deliverAll(ctx, from); err != nil {
			return r, err
		}
		if _, err = t.copyRates(ctx, from); err != nil {
			return r, err
		}
		if r.moved, r.ended, err = t.moveTimers(ctx, from); r.moved > 0 || err != nil {
			return r, err
		}
		k := t.from.timers.Keys().Of(from)
		if r.moved, err = t.moveEntries(ctx, from, k.Dead, ofDead); r.moved > 0 || err != nil {
			return r, err
		}
		if r.moved, err = t.moveEntries(ctx, from, k.History, ofHistory); r.moved > 0 || err != nil {
			return r, err
		}
		return r, t.moveCounts(ctx, from)
	})
	ended = true
	for _, r := range results {
		moved += r.moved
		ended = ended && r.ended
	}
	return moved, ended, err
}

// moveTimers moves timers of a physical topic, and reports whether it has looked at the
// last of them.
func (t *transport) moveTimers(ctx context.Context, from string) (moved int64, ended bool, err error) {
	took, err := t.take(ctx, from)
	if took.token == "" || err != nil {
		return 0, took.ended, err
	}
	return took.timers, false, t.deliver(ctx, from, took.token, took.batch)
}

// taking is what a step has taken out of a physical topic.
type taking struct {
	timers       int64
	token, batch string // empty: nothing
	ended        bool   // there are no timers that it has not looked at
}

// take takes a batch of timers out of a physical topic. It continues where the last call has
// ended, so that each looks at few of those that have to stay.
func (t *transport) take(ctx context.Context, from string) (took taking, err error) {
	box, _ := t.outbox(t.from.timers.Keys().Of(from))
	for range movePages {
		offset, _ := t.offsets.Load(box)
		at, _ := offset.(string)
		var next string
		if took, next, err = t.takePage(ctx, from, t.bounds.timers, cmp.Or(at, "0")); err != nil {
			return took, err
		}
		t.offsets.Store(box, next)
		if took.ended = next == ""; took.ended || took.token != "" {
			break
		}
	}
	return took, nil
}

// takePage looks at some timers of a physical topic, or only continues with a key that
// moves in several steps, and returns where to continue; empty: those were the last ones.
func (t *transport) takePage(ctx context.Context, from string, look int, offset string) (took taking, next string, err error) {
	k := t.from.timers.Keys().Of(from)
	batches, index := t.outbox(k)
	keys := []string{k.Timeline, k.Payloads, k.Leases, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, batches, index, k.Pins()}
	n, texts, err := t.runTake(ctx, from, 4, takeScript, keys, look, offset, t.margin.Microseconds(), t.grace.Microseconds(), t.bounds.timers, t.bounds.bytes)
	if err != nil {
		return took, "", fmt.Errorf("move timers of %q: %w", from, err)
	}
	return taking{timers: n, token: texts[2], batch: texts[3]}, texts[1], nil
}

// moveEntries moves entries of a stream of a physical topic.
func (t *transport) moveEntries(ctx context.Context, from, stream, kind string) (int64, error) {
	batches, index := t.outbox(t.from.timers.Keys().Of(from))
	taken, texts, err := t.runTake(ctx, from, 3, takeEntriesScript, []string{stream, batches, index}, kind, t.bounds.timers, t.bounds.bytes)
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
	for cursor, more := "0", true; more; more = cursor != "0" {
		taken, texts, err := t.runTake(ctx, from, 4, takeCountsScript, []string{k.Counts, batches, index}, ofCounts, cursor, t.bounds.timers)
		if err == nil && taken > 0 {
			err = t.deliver(ctx, from, texts[2], texts[3])
		}
		if err != nil {
			return fmt.Errorf("move the counts of %q: %w", from, err)
		}
		cursor = texts[1]
	}
	return nil
}

// errMoveEnded says that another process has ended the move, so that nothing may leave the
// source any more: a later move would not know whether it has arrived.
var errMoveEnded = fmt.Errorf("%w: another process has ended the move; repeat the call if timers have come since", wakebelltype.ErrInvalid)

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

// A key that has used tokens of RateLimitByKey may have no timers for a while, so its tokens
// do not move with them. When they are back is copied, before timers move and in every
// step: the later of two instants counts, so that it may be repeated.

// ratesLife is for how long it is stored that tokens are back, as by lua/flow_key_rate.lua.
const ratesLife = time.Minute

// copyRates copies a page of when the tokens of keys are back, where the last call has ended,
// and reports whether it was the last one.
func (t *transport) copyRates(ctx context.Context, from string) (ended bool, err error) {
	rates := t.from.timers.Keys().Of(from).KeyRates
	at, _ := t.offsets.Load(rates)
	text, _ := at.(string)
	cursor, _ := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
	var page []string
	var next uint64
	err = t.from.timers.Again(ctx, func() (err error) {
		page, next, err = t.from.timers.RDB.ZScan(ctx, rates, cursor, "", movePage).Result()
		return scripts.Wrap(ctx, []string{rates}, err)
	})
	if scripts.IsDenied(err) { // the keys of such a user have no rates
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("rates of keys of %q: %w", from, err)
	}
	parts := map[string][]any{}
	for i := 0; i+1 < len(page); i += 2 {
		name := t.layout.Shard(t.topic, "", page[i])
		parts[name] = append(parts[name], page[i], page[i+1])
	}
	_, err = each(ctx, slices.Sorted(maps.Keys(parts)), func(ctx context.Context, name string) (string, error) {
		keys := []string{t.to.timers.Keys().Of(name).KeyRates}
		return t.to.timers.RunText(ctx, arriveRatesScript, keys, append([]any{ratesLife.Milliseconds()}, parts[name]...)...)
	})
	if err != nil {
		return false, fmt.Errorf("rates of keys of %q: %w", from, err)
	}
	t.offsets.Store(rates, strconv.FormatUint(next, 10))
	return next == 0, nil
}

// copyAllRates copies all of them, of some physical topics.
func (t *transport) copyAllRates(ctx context.Context, names []string) error {
	_, err := each(ctx, names, func(ctx context.Context, from string) (ended bool, err error) {
		t.offsets.Delete(t.from.timers.Keys().Of(from).KeyRates) // from the first one on
		for !ended && err == nil {
			ended, err = t.copyRates(ctx, from)
		}
		return ended, err
	})
	return err
}

package shards

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

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
		for !ended && err == nil {
			ended, err = t.copyRates(ctx, from)
		}
		return ended, err
	})
	return err
}

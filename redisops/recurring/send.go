package recurring

import (
	"context"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Send moves a timer from the outbox of an entry to its topic, unless that run or a
// later one was sent before.
func (b *Store) Send(ctx context.Context, name, incarnation string, p recur.Put) error {
	return b.shards.Routed(ctx, []string{p.Topic}, func() error { return b.send(ctx, name, incarnation, p) })
}

// send is Send with the layout that the map has.
func (b *Store) send(ctx context.Context, name, incarnation string, p recur.Put) error {
	place, err := b.shards.Place(ctx, p.Topic, p.ID)
	if err != nil {
		return fmt.Errorf("send run %d of %q: %w", p.Run, name, err)
	}
	if was, err := b.shards.RunWasPut(ctx, p.Topic, name, p.ID, incarnation, p.Run); was || err != nil {
		return err
	}
	k := b.timers.Keys().Of(place.Name)
	err = b.timers.Counted(ctx, func(counting bool) error {
		keys := []string{k.Timeline, k.Payloads, k.Leases, k.Hint, k.Runs, k.Counts}
		if !counting {
			keys[5] = keys[0]
		}
		args := []any{name, incarnation, strconv.FormatInt(p.Run, 10), p.ID, p.Payload, scripts.ScoreText(p.At)}
		return b.timers.OrUnfenced([]*timers.Fence{place.Fence}, func(fenced bool) error {
			var guards []scripts.Guard
			if fenced {
				guards = place.Fence.Guards(b.timers.Keys(), place.Name)
			}
			keys, args := scripts.WithGuards(guards, keys, args)
			_, err := b.timers.RunText(ctx, sendScript, keys, args...)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("send run %d of %q: %w", p.Run, name, err)
	}
	b.timers.Remember(ctx, place.Name)
	return nil
}

// Waiting reports whether a timer exists in its topic.
func (b *Store) Waiting(ctx context.Context, topic, id string) (bool, error) {
	return b.shards.Exists(ctx, topic, id)
}

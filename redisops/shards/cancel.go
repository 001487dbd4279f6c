package shards

import (
	"context"
	"maps"
	"slices"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Cancel removes timers; see [timers.Timers.Cancel].
func (s *Store) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error) {
	return s.CancelKeyed(ctx, topic, nil, ids...)
}

// CancelKeyed is Cancel with an idempotency key; nil means none. After an error each
// shard may have removed its timers or not, and the results are those of the first ids.
func (s *Store) CancelKeyed(ctx context.Context, topic string, key *timers.Key, ids ...string) ([]wakebelltype.Presence, error) {
	c := &cancelling{store: s, topic: topic, key: key, ids: ids, found: make([]wakebelltype.Presence, len(ids))}
	_, err := routed(ctx, s, topic, func(l sharding.Layout) (bool, error) { return true, c.run(ctx, l) })
	if at := slices.Index(c.found, 0); err != nil && at >= 0 {
		return c.found[:at], err
	}
	for i, presence := range c.found {
		c.found[i] = max(presence, wakebelltype.PresenceAbsent)
	}
	return c.found, err
}

// cancelling is a call that cancels timers, whose topic may get another layout meanwhile.
type cancelling struct {
	store *Store
	topic string
	key   *timers.Key // nil: none
	ids   []string
	found []wakebelltype.Presence // by the indexes of ids; 0: not yet

	layout sharding.Layout         // with which the call is routed now
	asked  map[string]map[int]bool // indexes of the ids for which each physical topic was asked with it
}

// run cancels those of ids that were not found yet.
func (c *cancelling) run(ctx context.Context, l sharding.Layout) (err error) {
	if !l.Divided() {
		found, err := c.store.at(l).CancelKeyed(ctx, c.topic, c.key, c.ids...)
		copy(c.found, found)
		return err
	}
	c.layout, c.asked = l, map[string]map[int]bool{}
	if c.key != nil {
		// Where an id may be decides which answer is final, so the layout must be the present one.
		if c.layout, err = c.store.again(ctx, c.topic, l); err != nil {
			return err
		}
		if err := c.recall(ctx); err != nil {
			return err
		}
	}
	c.skipRepeated()
	if c.layout.Moves() {
		if err := c.cancelOld(ctx); err != nil {
			return err
		}
	}
	first := c.cancelFound
	if c.key != nil && c.onlyOwn() {
		first = c.cancelFinally
	}
	if err := c.ask(ctx, first, c.own); err != nil {
		return err
	}
	if !slices.Contains(c.found, 0) {
		return nil
	}
	if c.layout, err = c.store.again(ctx, c.topic, c.layout); err != nil {
		return err
	}
	if err := c.ask(ctx, c.cancelFound, c.everywhere); err != nil || c.key == nil {
		return err
	}
	clear(c.asked) // their own shards note that they are absent
	return c.ask(ctx, c.cancelFinally, c.own)
}

// skipRepeated notes that ids which are given twice are absent after the first time.
func (c *cancelling) skipRepeated() {
	seen := make(map[string]bool, len(c.ids))
	for i, id := range c.ids {
		if seen[id] {
			c.found[i] = wakebelltype.PresenceAbsent
		}
		seen[id] = true
	}
}

// cancelOld cancels timers in the shards before, from which timers move, and delivers the
// outboxes that have others of them.
func (c *cancelling) cancelOld(ctx context.Context) error {
	olds := func(id string) []string { return old(c.layout, c.topic, id) }
	if err := c.ask(ctx, c.cancelFound, olds); err != nil {
		return err
	}
	absent := map[string][]string{}
	for i, id := range c.ids {
		if c.found[i] == 0 {
			for _, name := range olds(id) {
				absent[name] = append(absent[name], id)
			}
		}
	}
	for name, ids := range absent {
		if err := c.store.settleTaken(ctx, c.topic, c.layout, name, ids...); err != nil {
			return err
		}
	}
	return nil
}

// own returns the physical topic in which an id belongs.
func (c *cancelling) own(id string) []string {
	own, _ := place(c.layout, c.topic, id)
	return []string{own}
}

// onlyOwn reports whether an id that the shards before do not have is in its own shard, or
// nowhere.
func (c *cancelling) onlyOwn() bool {
	l := c.layout
	return !l.Keyed && l.To == 0 && (!l.Moving || l.Moves())
}

// everywhere returns the physical topics in which an id may be.
func (c *cancelling) everywhere(id string) []string {
	own, others := place(c.layout, c.topic, id)
	return append(others, own)
}

type cancelCall = func(ctx context.Context, name string, ids []string) ([]wakebelltype.Presence, error)

func (c *cancelling) cancelFound(ctx context.Context, name string, ids []string) ([]wakebelltype.Presence, error) {
	return c.store.at(c.layout).CancelFound(ctx, name, c.key, ids...)
}

func (c *cancelling) cancelFinally(ctx context.Context, name string, ids []string) ([]wakebelltype.Presence, error) {
	return c.store.at(c.layout).CancelKeyed(ctx, name, c.key, ids...)
}

// ask makes a call for those ids that were not found yet in the physical topics that places
// returns, unless these were asked, and stores what it finds.
func (c *cancelling) ask(ctx context.Context, call cancelCall, places func(id string) []string) error {
	asked := map[string][]int{} // indexes of ids
	for i, id := range c.ids {
		if c.found[i] != 0 {
			continue
		}
		for _, name := range places(id) {
			if c.asked[name] == nil {
				c.asked[name] = map[int]bool{}
			}
			if !c.asked[name][i] {
				c.asked[name][i] = true
				asked[name] = append(asked[name], i)
			}
		}
	}
	names := slices.Sorted(maps.Keys(asked))
	answers, err := each(ctx, names, func(ctx context.Context, name string) ([]wakebelltype.Presence, error) {
		part := make([]string, len(asked[name]))
		for i, at := range asked[name] {
			part[i] = c.ids[at]
		}
		return call(ctx, name, part)
	})
	for i, name := range names {
		for j, presence := range answers[i] {
			at := asked[name][j]
			c.found[at] = max(c.found[at], presence)
		}
	}
	return err
}

package recurring

import (
	"context"
	"fmt"
	"strings"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Parts is into how many parts the schedules are divided on a Cluster, unless the prefix of
// their keys has a hash tag. All processes must have the same number, so it never changes.
// A node with a beat looks at each part every few seconds, therefore there are no more.
const Parts = 16

// divide gives the store its parts. A part is a store with a prefix of its own, which has a
// hash tag: a schedule with its lock, as RedBeat knows it.
func (b *Store) divide() {
	for i := range Parts {
		b.parts = append(b.parts, &Store{shards: b.shards, timers: b.timers, prefix: partPrefix(b.prefix, i)})
	}
}

// partPrefix puts a prefix into a hash tag with the number of a part: redbeat: becomes
// {redbeat:3}:.
func partPrefix(prefix string, part int) string {
	name, colon := strings.CutSuffix(prefix, ":")
	tagged := layout.Numbered("{"+name+"}", part)
	if colon {
		tagged += ":"
	}
	return tagged
}

// Parts returns the parts of the store, or the store itself if it has none.
func (b *Store) Parts() []*Store {
	if b.parts == nil {
		return []*Store{b}
	}
	return b.parts
}

// of returns the part of a schedule by its full name.
func (b *Store) of(name string) *Store {
	if b.parts == nil {
		return b
	}
	return b.parts[sharding.ShardOf(name, "", len(b.parts))]
}

// checkUndivided refuses a Cluster on which Python processes store schedules under the
// prefix itself: no beat of Wakebell would see them.
func (b *Store) checkUndivided(ctx context.Context) error {
	var found int64
	err := b.again(ctx, func() (err error) {
		found, err = b.rdb().Exists(ctx, b.schedule()).Result()
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("look for %q: %w", b.schedule(), scripts.Wrap(ctx, nil, err))
	case found > 0:
		return fmt.Errorf("%w: the Cluster has a schedule under the prefix %q, which Wakebell would divide; share it under a prefix with a hash tag, such as %q, or delete the key %q",
			wakebelltype.ErrUnsupported, b.prefix, "{redbeat}:", b.schedule())
	}
	return nil
}

// Reserves reports whether a key of this name would be among those of schedules on a
// Cluster.
func Reserves(prefix, name string) bool {
	if layout.HasTag(prefix) {
		return false // it is not divided
	}
	name = layout.Unnumbered(name)
	tagged := "{" + strings.TrimSuffix(prefix, ":") + "}"
	return name == tagged || strings.HasPrefix(name, tagged+":")
}

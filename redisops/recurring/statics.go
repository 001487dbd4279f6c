package recurring

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/redisops/internal/layout"
)

// statics is the key of the set of names that a service has written. Prefix and
// owner are escaped, so that the keys of two prefixes never collide.
func (b *Store) statics(prefix, owner string) string {
	return b.of(owner).prefix + ":wakebell-statics:" + layout.EscapeColons.Replace(prefix) + ":" + layout.EscapeColons.Replace(owner)
}

// Statics returns the names of the entries that a service with a prefix has written
// from its configuration. RedBeat's own set is not used, because a Python beat
// deletes the members that it does not know.
func (b *Store) Statics(ctx context.Context, prefix, owner string) ([]string, error) {
	var names []string
	err := b.again(ctx, func() (err error) {
		names, err = b.rdb().SMembers(ctx, b.statics(prefix, owner)).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the static schedules of %q: %w", owner, err)
	}
	return names, nil
}

// AddStatics adds names to those that a service has written.
func (b *Store) AddStatics(ctx context.Context, prefix, owner string, names ...string) error {
	return b.noteStatics(ctx, names, func(values []any) error {
		return b.rdb().SAdd(ctx, b.statics(prefix, owner), values...).Err()
	})
}

// DropStatics removes names from those of a service.
func (b *Store) DropStatics(ctx context.Context, prefix, owner string, names ...string) error {
	return b.noteStatics(ctx, names, func(values []any) error {
		return b.rdb().SRem(ctx, b.statics(prefix, owner), values...).Err()
	})
}

func (b *Store) noteStatics(ctx context.Context, names []string, note func([]any) error) error {
	if len(names) == 0 {
		return nil
	}
	values := make([]any, len(names))
	for i, name := range names {
		values[i] = name
	}
	if err := b.again(ctx, func() error { return note(values) }); err != nil {
		return fmt.Errorf("note the static schedules: %w", err)
	}
	return nil
}

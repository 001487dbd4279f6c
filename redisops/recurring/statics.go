package recurring

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/redisops/internal/layout"
)

// statics is the set of the names that a service has put. The owner is escaped,
// so that those of two prefixes never meet.
func (b *Store) statics(prefix, owner string) string {
	return b.prefix + ":wakebell-statics:" + layout.EscapeColons.Replace(prefix) + ":" + layout.EscapeColons.Replace(owner)
}

// Statics are the names of the entries that a service of a prefix has put from its
// configuration. RedBeat's own set is left to it: a Python beat deletes what it
// does not have itself.
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

// AddStatics notes names as put by a service.
func (b *Store) AddStatics(ctx context.Context, prefix, owner string, names ...string) error {
	return b.noteStatics(ctx, names, func(values []any) error {
		return b.rdb().SAdd(ctx, b.statics(prefix, owner), values...).Err()
	})
}

// DropStatics takes names out of those of a service.
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

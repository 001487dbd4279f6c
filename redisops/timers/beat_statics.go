package timers

import (
	"context"
	"fmt"
)

// statics is the set of the names that a service has put. The owner is escaped,
// so that those of two prefixes never meet.
func (b *Beat) statics(prefix, owner string) string {
	return b.prefix + ":wakebell-statics:" + escapeColons.Replace(prefix) + ":" + escapeColons.Replace(owner)
}

// Statics are the names of the entries that a service of a prefix has put from its
// configuration. RedBeat's own set is left to it: a Python beat deletes what it
// does not have itself.
func (b *Beat) Statics(ctx context.Context, prefix, owner string) ([]string, error) {
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
func (b *Beat) AddStatics(ctx context.Context, prefix, owner string, names ...string) error {
	return b.noteStatics(ctx, names, func(values []any) error {
		return b.rdb().SAdd(ctx, b.statics(prefix, owner), values...).Err()
	})
}

// DropStatics takes names out of those of a service.
func (b *Beat) DropStatics(ctx context.Context, prefix, owner string, names ...string) error {
	return b.noteStatics(ctx, names, func(values []any) error {
		return b.rdb().SRem(ctx, b.statics(prefix, owner), values...).Err()
	})
}

func (b *Beat) noteStatics(ctx context.Context, names []string, note func([]any) error) error {
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

package recurring

import (
	"context"

	"github.com/wakebell/wakebell/internal/recur"
)

// Overlapping returns the full names of schedules that would look for their last runs in a topic
// before the next: those with Overlap that run there, are not paused and have not ended. They are
// in no order, and one may occur twice. It stops looking when it has found a number of them.
func (b *Store) Overlapping(ctx context.Context, topic string, enough int) (found []string, err error) {
	for _, part := range b.Parts() {
		for cursor := uint64(0); ; {
			var page []Member
			if page, cursor, err = part.Names(ctx, cursor); err != nil {
				return nil, err
			}
			var names []string
			for _, m := range page {
				if m.Score >= 0 {
					names = append(names, m.Name)
				}
			}
			raw, err := b.Load(ctx, names...)
			if err != nil {
				return nil, err
			}
			for i, name := range names {
				if overlaps(raw[i], name, topic) {
					found = append(found, name)
				}
			}
			if len(found) >= enough {
				return found, nil
			}
			if cursor == 0 {
				break
			}
		}
	}
	return found, nil
}

// overlaps reports whether a schedule has Overlap, runs on a topic, and is not paused. One that
// cannot be read does not run.
func overlaps(raw recur.Raw, name, topic string) bool {
	ours, err := recur.ReadOurs(raw.Ours)
	if err != nil || ours.Overlap == recur.OverlapAllow { // most schedules: the rule is not read
		return false
	}
	e, err := recur.Read(raw, name, nil)
	return err == nil && e.Topic() == topic && !ours.Celery && e.Enabled()
}

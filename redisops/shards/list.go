package shards

import (
	"cmp"
	"context"
	"slices"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/timers"
)

// page is a part of the listing of one shard: items in their order, each with its place.
// Items beyond end are not in it; without more, there are none.
type page[P, T any] struct {
	items []T
	at    []P
	end   P
	more  bool
}

// merge joins pages of shards that were read from the same place on. It returns at most
// limit items, and where the listing goes on. A page says nothing about what is beyond its
// end, so no item beyond the first end is returned.
func merge[P, T any](pages []page[P, T], compare func(a, b P) int, limit int) page[P, T] {
	var joined page[P, T]
	for _, p := range pages {
		if p.more && (!joined.more || compare(p.end, joined.end) < 0) {
			joined.end, joined.more = p.end, true
		}
	}
	type place struct{ page, item int }
	var order []place
	for i, p := range pages {
		for j := range p.items {
			if !joined.more || compare(p.at[j], joined.end) <= 0 {
				order = append(order, place{i, j})
			}
		}
	}
	at := func(p place) P { return pages[p.page].at[p.item] }
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Or(compare(at(a), at(b)), cmp.Compare(a.page, b.page)) })
	if len(order) > limit {
		order = order[:limit]
		joined.end, joined.more = at(order[limit-1]), true
	}
	for _, p := range order {
		joined.items, joined.at = append(joined.items, pages[p.page].items[p.item]), append(joined.at, at(p))
	}
	return joined
}

// listed is a place in a listing of timers.
type listed struct {
	timers.Position
	cursor timers.Cursor
}

func listedAt(c timers.Cursor) (listed, error) {
	p, err := c.Position()
	return listed{p, c}, err
}

// List reads a page of timers of all shards, ordered by instant, then id; see
// [timers.Timers.List]. Each shard reads as many timers as the page has.
func (s *Store) List(ctx context.Context, topic string, f timers.Filter) ([]timers.Timer, timers.Cursor, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return nil, "", err
	}
	if len(names) == 1 {
		return s.timers.List(ctx, names[0], f)
	}
	pages, err := each(ctx, names, func(ctx context.Context, name string) (page[listed, timers.Timer], error) {
		return s.listPage(ctx, name, f)
	})
	if err != nil {
		return nil, "", err
	}
	limit := f.Limit
	if limit == 0 {
		limit = layout.DefaultPage
	}
	joined := merge(pages, func(a, b listed) int { return a.Compare(b.Position) }, limit)
	if !joined.more {
		return joined.items, "", nil
	}
	return joined.items, joined.end.cursor, nil
}

func (s *Store) listPage(ctx context.Context, name string, f timers.Filter) (p page[listed, timers.Timer], err error) {
	items, next, err := s.timers.List(ctx, name, f)
	if err != nil {
		return p, err
	}
	p.items, p.at, p.more = items, make([]listed, len(items)), next != ""
	for i := range items {
		if p.at[i], err = listedAt(items[i].Cursor); err != nil {
			return p, err
		}
	}
	p.end, err = listedAt(next)
	return p, err
}

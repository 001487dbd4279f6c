package shards

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
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

// spot is a place in a listing of what streams of several shards have: the id of an entry,
// its shard, and, of history, the index within the entry. Entries of two shards may have
// the same id, so the shard is a part of the order.
type spot struct {
	ms, seq  uint64
	n, k     int
	index    int
	indexed  bool
	physical string
}

// readSpot reads a place as text returns it; the topic names its shard.
func readSpot(place, topic string) (spot, error) {
	entry, name := sharding.Placed(place, topic)
	_, n, k := sharding.Split(name)
	s := spot{n: n, k: k, physical: name}
	entry, index, indexed := strings.Cut(entry, "/")
	ms, seq, _ := strings.Cut(entry, "-")
	var errs [3]error
	s.ms, errs[0] = strconv.ParseUint(ms, 10, 64)
	s.seq, errs[1] = strconv.ParseUint(seq, 10, 64)
	if s.indexed = indexed; indexed {
		s.index, errs[2] = strconv.Atoi(index)
	}
	if cmp.Or(errs[0], errs[1], errs[2]) != nil {
		return s, fmt.Errorf("%w: after: %q is not a valid page cursor", wakebelltype.ErrInvalid, place)
	}
	return s, nil
}

func (s spot) compare(other spot) int {
	return cmp.Or(cmp.Compare(s.ms, other.ms), cmp.Compare(s.seq, other.seq), cmp.Compare(s.n, other.n), cmp.Compare(s.k, other.k), cmp.Compare(s.index, other.index))
}

// entry returns the place within the stream of a shard after which the shard goes on, if
// the listing of all shards goes on after s.
func (s spot) entry(name string) string {
	_, n, k := sharding.Split(name)
	switch c := cmp.Or(cmp.Compare(n, s.n), cmp.Compare(k, s.k)); {
	case c < 0: // the shard has been listed up to the whole entry
		s.index = math.MaxInt32
	case c > 0 && s.seq > 0:
		s.seq, s.index = s.seq-1, math.MaxInt32
	case c > 0 && s.ms > 0:
		s.ms, s.seq, s.index = s.ms-1, math.MaxUint64, math.MaxInt32
	case c > 0:
		return ""
	}
	text := strconv.FormatUint(s.ms, 10) + "-" + strconv.FormatUint(s.seq, 10)
	if s.indexed {
		text += "/" + strconv.Itoa(s.index)
	}
	return text
}

// walk reads a page of a listing of streams: read reads that of a physical topic, and
// place returns the entry of an item and sets it to its place.
func walk[T any](
	ctx context.Context, names []string, topic, after string, limit int,
	read func(ctx context.Context, name, after string) ([]T, string, error), place func(*T) *string,
) ([]T, string, error) {
	var from *spot
	if after != "" {
		s, err := readSpot(after, topic)
		if err != nil {
			return nil, "", err
		}
		from = &s
	}
	pages, err := each(ctx, names, func(ctx context.Context, name string) (p page[spot, T], err error) {
		start := ""
		if from != nil {
			start = from.entry(name)
		}
		items, next, err := read(ctx, name, start)
		if err != nil {
			return p, err
		}
		p.items, p.at, p.more = items, make([]spot, len(items)), next != ""
		for i := range items {
			at := place(&items[i])
			*at = sharding.Place(*at, name)
			if p.at[i], err = readSpot(*at, topic); err != nil {
				return p, err
			}
		}
		if p.more {
			p.end, err = readSpot(sharding.Place(next, name), topic)
		}
		return p, err
	})
	if err != nil {
		return nil, "", err
	}
	joined := merge(pages, spot.compare, limit)
	if !joined.more {
		return joined.items, "", nil
	}
	return joined.items, sharding.Place(joined.end.entry(joined.end.physical), joined.end.physical), nil
}

func entryOf(d *timers.DeadLetter) *string { return &d.Entry }

func cursorOf(a *wakebelltype.Attempt) *string { return &a.Cursor }

func atDeath(a, b timers.DeadLetter) int { return a.At.Compare(b.At) }

func atEnd(a, b wakebelltype.Attempt) int {
	return a.Started.Add(a.Took).Compare(b.Started.Add(b.Took))
}

func newest[T any](lists [][]T, n int, order func(a, b T) int) []T {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, order)
	return all[max(len(all)-n, 0):]
}

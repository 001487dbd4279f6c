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
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

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

func entryOf(d *timers.DeadLetter) *string     { return &d.Entry }
func cursorOf(a *wakebelltype.Attempt) *string { return &a.Cursor }
func atDeath(a, b timers.DeadLetter) int       { return a.At.Compare(b.At) }
func atEnd(a, b wakebelltype.Attempt) int {
	return a.Started.Add(a.Took).Compare(b.Started.Add(b.Took))
}

func newest[T any](lists [][]T, n int, order func(a, b T) int) []T {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, order)
	return all[max(len(all)-n, 0):]
}

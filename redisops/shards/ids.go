package shards

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// place returns the physical topic in which a timer without a key is, and the others
// where it may be: all others while timers have keys, and otherwise its places in the
// layouts between which timers move.
func place(l sharding.Layout, topic, id string) (own string, others []string) {
	own = l.Shard(topic, id, "")
	if l.Keyed {
		return own, slices.DeleteFunc(l.All(topic), func(name string) bool { return name == own })
	}
	for _, n := range l.Others() {
		others = append(others, sharding.Name(topic, n, sharding.ShardOf(id, "", n)))
	}
	return own, others
}

// Place returns the physical topic in which a timer without a key belongs.
func (s *Store) Place(ctx context.Context, topic, id string) (string, error) {
	l, err := s.layout(ctx, topic)
	return l.Shard(topic, id, ""), err
}

// again returns the layout of a topic whose shard does not have a timer. If the map was
// read before another client divided the topic or scheduled the first timer with a key,
// it is read again. A topic without shards is announced before it has any, so the layout
// that was read is enough.
func (s *Store) again(ctx context.Context, topic string, l sharding.Layout) (sharding.Layout, error) {
	if l.Plain() || l.Keyed {
		return l, nil
	}
	if err := s.layouts.Renew(ctx); err != nil {
		return l, err
	}
	return s.layouts.Of(ctx, topic)
}

// find makes a call for a timer in the shard of its id, and if that does not have it, in
// the others that may.
func find[T any](ctx context.Context, s *Store, topic, id string, call func(ctx context.Context, name string) (T, error)) (T, error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		var none T
		return none, err
	}
	if l.Moves() {
		return findMoving(ctx, s, l, topic, id, call)
	}
	first, _ := place(l, topic, id)
	found, err := call(ctx, first)
	if !errors.Is(err, redisops.ErrNotFound) {
		return found, err
	}
	l, failed := s.again(ctx, topic, l)
	if failed != nil {
		return found, failed
	}
	own, rest := place(l, topic, id)
	if own != first {
		rest = append([]string{own}, rest...)
	}
	type answer struct {
		found T
		err   error
	}
	answers, _ := each(ctx, rest, func(ctx context.Context, name string) (answer, error) {
		found, err := call(ctx, name)
		return answer{found, err}, nil
	})
	for _, a := range answers {
		if !errors.Is(a.err, redisops.ErrNotFound) {
			return a.found, a.err
		}
	}
	return found, err
}

// Get reads a timer; see [timers.Timers.Get].
func (s *Store) Get(ctx context.Context, topic, id string) (timers.Timer, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, name string) (timers.Timer, error) { return s.timers.Get(ctx, name, id) })
}

// Reschedule sets a new instant for a timer, which stays in its shard; see
// [timers.Timers.Reschedule].
func (s *Store) Reschedule(ctx context.Context, topic, id string, at time.Time, in time.Duration) (wakebelltype.Scheduled, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, name string) (wakebelltype.Scheduled, error) {
		return s.timers.Reschedule(ctx, name, id, at, in)
	})
}

// RunNow makes a timer due now; see [timers.Timers.RunNow].
func (s *Store) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, name string) (wakebelltype.Presence, error) {
		return s.timers.RunNow(ctx, name, id)
	})
}

// Cancel removes timers; see [timers.Timers.Cancel].
func (s *Store) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error) {
	return s.CancelKeyed(ctx, topic, nil, ids...)
}

// secondRound is the part of a call with an idempotency key that asks the shards in which
// an id is only if timers have keys. It lies beyond the ids of any call.
const secondRound = 1 << 30

// CancelKeyed is Cancel with an idempotency key; nil means none. After an error each
// shard may have removed its timers or not.
func (s *Store) CancelKeyed(ctx context.Context, topic string, key *timers.Key, ids ...string) ([]wakebelltype.Presence, error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		return nil, err
	}
	if l.Plain() && !recalls(l) {
		return s.timers.CancelKeyed(ctx, topic, key, ids...)
	}
	found := make([]wakebelltype.Presence, len(ids))
	for i := range found {
		found[i] = wakebelltype.PresenceAbsent
	}
	if err := s.recallCancel(ctx, l, topic, key, ids, found); err != nil {
		return nil, err
	}
	if l.Moves() {
		if err := s.cancelOld(ctx, l, topic, key.Part(apartPart), ids, found); err != nil {
			return found, err
		}
	}
	asked := map[string][]int{} // indexes of ids by physical topic
	for i, id := range ids {
		if found[i] == wakebelltype.PresenceAbsent {
			own, _ := place(l, topic, id)
			asked[own] = append(asked[own], i)
		}
	}
	if err := s.cancelIn(ctx, key, asked, ids, found); err != nil {
		return found, err
	}
	if !slices.Contains(found, wakebelltype.PresenceAbsent) {
		return found, nil
	}
	if l, err = s.again(ctx, topic, l); err != nil {
		return found, err
	}
	before := asked
	asked = map[string][]int{}
	for i, id := range ids {
		if found[i] != wakebelltype.PresenceAbsent {
			continue
		}
		own, others := place(l, topic, id)
		for _, name := range append(others, own) {
			if !slices.Contains(before[name], i) {
				asked[name] = append(asked[name], i)
			}
		}
	}
	return found, s.cancelIn(ctx, key.Part(secondRound), asked, ids, found)
}

// cancelOld cancels timers in the shards before, from which timers move, and delivers the
// outboxes that have others of them.
func (s *Store) cancelOld(ctx context.Context, l sharding.Layout, topic string, key *timers.Key, ids []string, found []wakebelltype.Presence) error {
	asked := map[string][]int{}
	for i, id := range ids {
		for _, name := range old(l, topic, id) {
			asked[name] = append(asked[name], i)
		}
	}
	if err := s.cancelIn(ctx, key, asked, ids, found); err != nil {
		return err
	}
	for name, at := range asked {
		var absent []string
		for _, i := range at {
			if found[i] == wakebelltype.PresenceAbsent {
				absent = append(absent, ids[i])
			}
		}
		if len(absent) == 0 {
			continue
		}
		if err := s.settleTaken(ctx, topic, l, name, absent...); err != nil {
			return err
		}
	}
	return nil
}

// recallCancel stores what a call with the key has found before the layout changed.
func (s *Store) recallCancel(ctx context.Context, l sharding.Layout, topic string, key *timers.Key, ids []string, found []wakebelltype.Presence) error {
	if key == nil || key.Brief() || !recalls(l) {
		return nil
	}
	asked := map[string][]int{}
	for i, id := range ids {
		own := sharding.Name(topic, l.From, sharding.ShardOf(id, "", l.From))
		asked[own] = append(asked[own], i)
	}
	return s.ask(ctx, asked, ids, found, func(ctx context.Context, name string, part []string) ([]wakebelltype.Presence, error) {
		return s.timers.RecallCancel(ctx, name, key, part...)
	})
}

// cancelIn cancels ids in the physical topics that asked names, and stores what it found.
func (s *Store) cancelIn(ctx context.Context, key *timers.Key, asked map[string][]int, ids []string, found []wakebelltype.Presence) error {
	return s.ask(ctx, asked, ids, found, func(ctx context.Context, name string, part []string) ([]wakebelltype.Presence, error) {
		return s.timers.CancelKeyed(ctx, name, key, part...)
	})
}

// ask makes a call for the ids in each physical topic, and stores where one has found
// something.
func (s *Store) ask(
	ctx context.Context, asked map[string][]int, ids []string, found []wakebelltype.Presence,
	call func(ctx context.Context, name string, part []string) ([]wakebelltype.Presence, error),
) error {
	names := slices.Sorted(maps.Keys(asked))
	answers, err := each(ctx, names, func(ctx context.Context, name string) ([]wakebelltype.Presence, error) {
		part := make([]string, len(asked[name]))
		for i, at := range asked[name] {
			part[i] = ids[at]
		}
		return call(ctx, name, part)
	})
	for i, name := range names {
		for j, presence := range answers[i] {
			if at := asked[name][j]; presence > wakebelltype.PresenceAbsent {
				found[at] = presence
			}
		}
	}
	return err
}

package shards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// While timers move, each timer is written where it is: what is in the shards before stays
// there until it is moved, so one script decides on it at any time. A timer, or a key with
// timers, that has left the shards before does not come back: all clients ask there first.

// pinMargin is for how long a timer stays after the call that writes it has ended.
const pinMargin = 10 * time.Second

// written is a timer of a batch that is to be written while its topic moves.
type written struct {
	index   int
	id, key string
	once    bool
}

// routes returns the physical topics of those timers of a batch that are still in the
// shards before, by the index of the timer. They stay there until unpin is called, when they
// are written, or for a while if it is not.
func (s *Store) routes(ctx context.Context, b timers.Batch, layouts map[string]sharding.Layout) (pinnedRoutes, error) {
	type place struct{ topic, name string }
	asked := map[place][]written{}
	b.Each(func(i int, topic string, e *timers.Entry) {
		if l := layouts[topic]; l.Moves() {
			at := place{topic, l.Old(topic, e.ID, e.Key)}
			asked[at] = append(asked[at], written{i, e.ID, e.Key, e.Once > 0})
		}
	})
	r := pinnedRoutes{names: map[int]string{}, call: rand.Text(), fields: map[string][]any{}}
	for at, list := range asked {
		codes, err := s.pin(ctx, layouts[at.topic], at.name, r.call, list)
		if err != nil {
			return r, err
		}
		ahead, err := s.ahead(ctx, at.topic, layouts[at.topic], list, codes)
		if err != nil {
			s.unpin(ctx, r)
			return r, err
		}
		taken := false
		for i, w := range list {
			if codes[i] == 'e' || codes[i] == 'k' {
				if !ahead[w.id] {
					r.names[w.index] = at.name
				}
				r.fields[at.name] = append(r.fields[at.name], "i"+w.id)
				if w.key != "" {
					r.fields[at.name] = append(r.fields[at.name], "k"+w.key)
				}
				continue
			}
			taken = taken || codes[i] == 'm'
			if w.once {
				to := []string{layouts[at.topic].Shard(at.topic, w.id, w.key)}
				if err := s.moveMark(ctx, at.name, w.id, func(bool) []string { return to }); err != nil {
					return r, err
				}
			}
		}
		if taken {
			if err := s.deliverAll(ctx, at.topic, layouts[at.topic], at.name); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// ahead returns which timers are where they belong although a timer of their key is in the
// shards before. So it is if a handler had that one, which did not hold its key, as under
// RateLimitByKey without PerKey, when the others moved.
func (s *Store) ahead(ctx context.Context, topic string, l sharding.Layout, list []written, codes string) (map[string]bool, error) {
	asked, found := map[string][]string{}, map[string]bool{}
	for i, w := range list {
		if codes[i] == 'k' {
			name := l.Shard(topic, w.id, w.key)
			asked[name] = append(asked[name], w.id)
		}
	}
	for name, ids := range asked {
		key := s.timers.Keys().Of(name).Timeline
		err := s.timers.Again(ctx, func() error {
			answers, _ := s.timers.RDB.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, id := range ids {
					pipe.ZScore(ctx, key, id)
				}
				return nil
			})
			for i, answer := range answers {
				switch err := answer.Err(); {
				case err == nil:
					found[ids[i]] = true
				case !errors.Is(err, redis.Nil):
					return scripts.Wrap(ctx, []string{key}, err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for timers in %q: %w", name, err)
		}
	}
	return found, nil
}

// pinnedRoutes are the timers of a call that stay in the shards before.
type pinnedRoutes struct {
	call   string
	names  map[int]string   // their physical topics, by the indexes of the timers
	fields map[string][]any // the fields of their pins by physical topic
}

// unpin lets timers move again that a call has written. A pin that stays expires, and the
// call is refused then.
func (s *Store) unpin(ctx context.Context, r pinnedRoutes) {
	for name, fields := range r.fields {
		keys := []string{s.timers.Keys().Of(name).Pins()}
		if _, err := s.timers.Try(ctx, unpinScript, keys, append([]any{r.call}, fields...)...); err != nil {
			s.layouts.log().DebugContext(ctx, "timers were not unpinned", "topic", name, "err", err)
		}
	}
}

// pin asks which timers are in a physical topic, and keeps these from being moved.
func (s *Store) pin(ctx context.Context, l sharding.Layout, name, call string, list []written) (string, error) {
	k := s.timers.Keys().Of(name)
	args := []any{(s.timers.Retry.Budget(ctx) + pinMargin).Microseconds(), call}
	for i := range list {
		args = append(args, list[i].id, list[i].key)
	}
	keys, args := scripts.WithGuards(fenceOf(l).Guards(s.timers.Keys(), name), []string{k.Timeline, k.KeyStates, k.Taken(), k.Pins(), k.KeyOrder, k.KeyRates}, args)
	codes, err := s.timers.RunText(ctx, pinScript, keys, args...)
	if err == nil && len(codes) != len(list) {
		err = fmt.Errorf("%w: %d answers for %d timers", scripts.ErrReply, len(codes), len(list))
	}
	if err != nil {
		return "", fmt.Errorf("look for timers in %q: %w", name, err)
	}
	return codes, nil
}

// old returns the shards before in which a timer may be.
func old(l sharding.Layout, topic, id string) []string {
	if l.Keyed {
		return sharding.Names(topic, l.From)
	}
	return []string{l.Old(topic, id, "")}
}

// findMoving makes a call for a timer of a topic whose timers move. If it is not found, and
// another client has scheduled the first timer with a key since the map was read, it is
// looked for in all shards.
func findMoving[T any](ctx context.Context, s *Store, l sharding.Layout, topic, id string, call placedCall[T]) (T, error) {
	found, err := findWhileMoving(ctx, s, l, topic, id, call)
	if !errors.Is(err, wakebelltype.ErrNotFound) {
		return found, err
	}
	later, failed := s.again(ctx, topic, l)
	switch {
	case failed != nil:
		return found, failed
	case later.Keyed == l.Keyed || later.ID != l.ID:
		return found, err
	default:
		return findWhileMoving(ctx, s, later, topic, id, call)
	}
}

// findWhileMoving makes the call in the shards before, and then, since timers only move away
// from there, in those in which they belong.
func findWhileMoving[T any](ctx context.Context, s *Store, l sharding.Layout, topic, id string, call placedCall[T]) (T, error) {
	olds := old(l, topic, id)
	found, err := firstOf(ctx, s.at(l), olds, call)
	if !errors.Is(err, wakebelltype.ErrNotFound) {
		return found, err
	}
	if _, err := each(ctx, olds, func(ctx context.Context, name string) (int, error) {
		return 0, s.settleTaken(ctx, topic, l, name, id)
	}); err != nil {
		return found, err
	}
	if l.Keyed {
		return firstOf(ctx, s.at(l), l.Names(topic), call)
	}
	return call(ctx, s.at(l), l.Shard(topic, id, ""))
}

// firstOf makes a call in several physical topics at once, and returns the first answer of
// one that has the timer, or an error of one that may have it.
func firstOf[T any](ctx context.Context, at timers.Fenced, names []string, call placedCall[T]) (T, error) {
	type answer struct {
		found T
		err   error
	}
	answers, _ := each(ctx, names, func(ctx context.Context, name string) (answer, error) {
		found, err := call(ctx, at, name)
		return answer{found, err}, nil
	})
	best := answers[0]
	for _, a := range answers {
		if a.err == nil {
			return a.found, nil
		}
		if errors.Is(best.err, wakebelltype.ErrNotFound) {
			best = a
		}
	}
	return best.found, best.err
}

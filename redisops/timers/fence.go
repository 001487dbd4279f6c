package timers

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A fence refuses writes that were routed with a layout that a topic does not have any more:
// those of a process that was stopped between the two. See docs/decisions/0027-shards.md.

// Fence is what must still apply when a call that was routed to a physical topic writes
// there; otherwise the error wraps [scripts.ErrStaleLayout].
type Fence struct {
	Layout string // the identity of the layout; empty: the topic was never divided
	Pins   string // the call whose pins keep the timers in the topic; empty: none does
}

// equal reports whether two fences refuse the same calls.
func (f *Fence) equal(other *Fence) bool {
	return f == other || f != nil && other != nil && *f == *other
}

// Fenced is the store for calls that a fence may refuse.
type Fenced struct {
	*Timers
	fence *Fence // nil: nothing is refused
}

// WithFence returns the store for calls that f may refuse; nil refuses none.
func (s *Timers) WithFence(f *Fence) Fenced { return Fenced{s, f} }

// runText runs a fenced script that returns one string.
func (s Fenced) runText(ctx context.Context, script *redis.Script, topic string, keys []string, args ...any) (reply string, err error) {
	err = s.orUnfenced(s.fence, func(f *Fence) error {
		keys, args := scripts.WithGuards(f.Guards(s.keys, topic), keys, args)
		reply, err = s.RunText(ctx, script, keys, args...)
		return err
	})
	return reply, err
}

// needed returns the fence, or nil if the user has no right to it.
func (s *Timers) needed(f *Fence) *Fence {
	if f != nil && f.Layout == "" && s.unfenced.Load() {
		return nil
	}
	return f
}

// OrUnfenced makes a call of several topics; see orUnfenced.
func (s *Timers) OrUnfenced(fences []*Fence, call func(fenced bool) error) error {
	strictest := &Fence{}
	for _, f := range fences {
		if f != nil && f.Layout != "" {
			strictest = f
		}
	}
	return s.orUnfenced(strictest, func(f *Fence) error { return call(f != nil) })
}

// orUnfenced makes a call, and without the fence if the user has no right to layouts: an
// earlier version did not need it. No other process of such a user has divided the topic.
func (s *Timers) orUnfenced(f *Fence, call func(*Fence) error) error {
	f = s.needed(f)
	err := call(f)
	if f == nil || f.Layout != "" || !scripts.IsDenied(err) {
		return err
	}
	if again := call(nil); !scripts.IsDenied(again) {
		s.unfenced.Store(true)
		return again
	}
	return err
}

// Guards returns what a script checks of a fence of a physical topic; nil: nothing.
func (f *Fence) Guards(k Keyspace, topic string) []scripts.Guard {
	if f == nil {
		return nil
	}
	of := TopicKeys{exchange: k.key(k.Exchange, topic)} // Of would make all keys
	guards := []scripts.Guard{{Code: 'l', Key: of.Layout(), Want: f.Layout}}
	if f.Pins != "" {
		guards = append(guards, scripts.Guard{Code: 'p', Key: of.Pins(), Want: f.Pins})
	}
	return guards
}

// codeHasKey is the code in lua/schedule.lua of the error that a batch without keys has
// the id of a timer that has one.
const codeHasKey = "WAKEBELLORDER"

// callOtherwise calls the script again after Redis has refused it: with the keys in which
// the order is stored if the id of a stored timer has a key, or without what the user has
// no right to. If that is not the reason, it returns err.
func (s *Timers) callOtherwise(ctx context.Context, p *part, err error) ([]wakebelltype.Scheduled, error) {
	again := *p
	switch {
	case strings.Contains(err.Error(), codeHasKey):
		again.load.keyed = true
		return s.call(ctx, &again)
	case !scripts.IsDenied(err):
	case !p.load.keyed && !s.keyless.Load() && s.lacksKeys(ctx, p.topic):
		s.keyless.Store(true)
		return s.call(ctx, &again)
	case p.counting:
		return s.callUncounted(ctx, &again)
	case p.fence != nil && p.fence.Layout == "":
		again.fence = nil
		out, err := s.call(ctx, &again)
		if !scripts.IsDenied(err) {
			s.unfenced.Store(true)
			s.uncounted.Store(false) // the next call finds out whether that right is missing, too
		}
		return out, err
	}
	return nil, err
}

// lacksKeys reports whether the user has no right to the keys of timers.
func (s *Timers) lacksKeys(ctx context.Context, topic string) bool {
	return scripts.IsDenied(s.RDB.Exists(ctx, s.keys.key(s.keys.TimerKeys, topic)).Err())
}

// callUncounted repeats a call that was denied, without the counts: they are for
// operators, and no schedule fails for a right that they lack.
func (s *Timers) callUncounted(ctx context.Context, p *part) ([]wakebelltype.Scheduled, error) {
	s.uncounted.Store(true)
	out, err := s.call(ctx, p)
	if err != nil {
		s.uncounted.Store(false) // another right is missing
		return out, err
	}
	if s.uncounted.Load() { // and not the right to the fence
		s.warnUncounted(ctx, s.keys.Counts)
	}
	return out, nil
}

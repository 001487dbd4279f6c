package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	movePage  = 200       // timers that one script takes, and timers of the timeline that it looks at
	moveBytes = 512 << 10 // of payloads that one script takes, unless one timer has more
	movePages = 10        // scripts of a step that find nothing to take

	// moveMargin is the time before its instant in which a timer without a key is no longer
	// moved. If the process that moves timers dies, others end its batches sooner.
	moveMargin = 3 * time.Second

	// reportEvery is the time between two reports of the progress.
	reportEvery = 200 * time.Millisecond

	// pageWait is how long it waits between two steps that found nothing to take, because
	// they did not look at all timers.
	pageWait = 10 * time.Millisecond

	// stayWait is how long a resharding waits for timers that could not be moved.
	stayWait = 200 * time.Millisecond
)

// Progress is how far a resharding is.
type Progress struct {
	Layout sharding.Layout
	Moved  int64 // timers, by this call
	Left   int64 // timers in the shards before
	Done   bool
}

// Reshard gives a topic with timers another number of shards, and moves its timers, in
// steps, while nodes and clients use it. It yields its progress now and then, until all
// timers are moved. It may be ended at any time; another call, with the same number,
// continues.
func (s *Store) Reshard(ctx context.Context, topic string, n int) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		var p, reported Progress
		var at time.Time
		for {
			wait, err := s.ReshardStep(ctx, topic, n, &p)
			if err != nil {
				yield(p, err)
				return
			}
			if p.Done || p.Layout != reported.Layout || time.Since(at) >= reportEvery {
				reported, at = p, time.Now()
				if !yield(p, nil) || p.Done {
					return
				}
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(p, ctx.Err())
				return
			}
		}
	}
}

// ReshardStep makes the next step of a resharding, and returns how long to wait then. Reshard
// calls it until p says that all is done.
func (s *Store) ReshardStep(ctx context.Context, topic string, n int, p *Progress) (wait time.Duration, err error) {
	l, err := s.advance(ctx, topic, n)
	if p.Layout = l; err != nil {
		return 0, err
	}
	if l.To > 0 || l.Moves() {
		now, err := s.now(ctx)
		if left := settleAfter - now.Sub(time.UnixMilli(l.Since)); err != nil || left > 0 {
			return min(left, time.Second), err
		}
	}
	if !l.Moves() { // it was divided while it had no timers, or is done
		p.Layout, err = s.Settle(ctx, topic)
		if p.Done = !p.Layout.Moving && p.Layout.To == 0; p.Done {
			p.Left = 0 // a node may have ended it since they were counted
		}
		return stayWait, err
	}
	moved, ended, err := s.move(ctx, topic, l)
	p.Moved += moved
	if errors.Is(err, scripts.ErrStaleLayout) { // another process has changed it
		return 0, s.layouts.agree(ctx, topic)
	}
	if err != nil {
		return 0, err
	}
	if p.Left, err = s.leftIn(ctx, topic, l); err != nil || moved > 0 {
		return 0, err
	}
	if !ended {
		return pageWait, nil
	}
	if l, err = s.Settle(ctx, topic); err != nil {
		return 0, err
	}
	if p.Layout, p.Done = l, !l.Moving; p.Done {
		p.Left = 0 // the last ones were handled meanwhile
	}
	return stayWait, nil
}

// advance makes the next change of the layout, if it is time.
func (s *Store) advance(ctx context.Context, topic string, n int) (sharding.Layout, error) {
	if err := CheckCount(topic, n); err != nil {
		return sharding.Layout{}, err
	}
	var moving error
	l, err := s.layouts.change(ctx, topic, func(l sharding.Layout) (next sharding.Layout, err error) {
		moving = nil
		switch {
		case l.To > 0 && l.To != n, l.Moving && l.Count() != n:
			return l, errShards("%d for topic %q: it is being changed to %d; finish that first", n, topic, max(l.To, l.Count()))
		case l.To == 0 && !l.Moving && l.Count() == n:
			return l, nil
		}
		now, err := s.now(ctx)
		if err == nil {
			moving, err = s.movesAway(ctx, topic, l, now)
		}
		switch {
		case err != nil:
			return l, err
		case moving != nil && l.To == 0: // if timers move, by an earlier version, which did not refuse it
			return l, moving
		case l.Moving:
			return l, nil
		case moving != nil: // it began before the announcement; none begins after it
			return l.Announced(0, now), nil
		case l.To == 0:
			l.Shards = l.Count()
			return l.Announced(n, now), s.checkInFlightOf(ctx, topic, l, n)
		case now.Sub(time.UnixMilli(l.Since)) < settleAfter:
			return l, nil
		}
		err = s.copyControl(ctx, l.Names(topic)[0], sharding.Names(topic, n))
		if errors.Is(err, wakebelltype.ErrInvalid) { // MaxInFlight was changed at the time of the announcement
			moving = err
			return l.Announced(0, now), nil
		} else if err != nil {
			return l, err
		}
		if next, err = s.resharded(ctx, topic, l, n, now); err != nil {
			return l, err
		}
		return next, s.toShards(topic, next).copyAllRates(ctx, l.Names(topic))
	})
	return l, cmp.Or(err, moving)
}

// movesAway returns why the number of shards of a topic cannot change: a move to another
// Redis has begun, whose batches may be in the outboxes of its shards. Moving is nil if none
// has.
func (s *Store) movesAway(ctx context.Context, topic string, l sharding.Layout, now time.Time) (moving, err error) {
	ids, err := each(ctx, l.Left(topic, now), s.moveOf)
	if err == nil && slices.ContainsFunc(ids, func(id string) bool { return id != "" }) {
		moving = errShards("topic %q is being moved to another Redis; finish that with `wakebell topics move`, or end it with --abort, and repeat the call", topic)
	}
	return moving, err
}

// resharded returns the layout of a topic whose timers are to move. A topic without shards
// did not note whether its timers have keys.
func (s *Store) resharded(ctx context.Context, topic string, l sharding.Layout, n int, now time.Time) (sharding.Layout, error) {
	next := l.Resharded(n, now)
	for _, name := range l.Names(topic) {
		key := s.timers.Keys().Of(name).KeyStates
		err := s.timers.Again(ctx, func() error {
			found, err := s.timers.RDB.Exists(ctx, key).Result()
			next.Keyed = next.Keyed || found > 0
			return scripts.Wrap(ctx, []string{key}, err)
		})
		if err != nil {
			return l, fmt.Errorf("look for keys of %q: %w", name, err)
		}
	}
	return next, nil
}

func (s *Store) checkInFlightOf(ctx context.Context, topic string, l sharding.Layout, n int) error {
	c, err := s.timers.Control(ctx, l.Names(topic)[0])
	if err != nil {
		return err
	}
	return checkInFlight(c.Settings, n)
}

// move makes one step in each of the shards before, and returns how many timers and
// entries it has moved, and whether it has looked at the last ones.
func (s *Store) move(ctx context.Context, topic string, l sharding.Layout) (moved int64, ended bool, err error) {
	return s.toShards(topic, l).step(ctx, sharding.Names(topic, l.From))
}

// leftIn returns the number of timers in the shards before.
func (s *Store) leftIn(ctx context.Context, topic string, l sharding.Layout) (left int64, err error) {
	return s.count(ctx, sharding.Names(topic, l.From))
}

// count returns the number of timers in physical topics.
func (s *Store) count(ctx context.Context, names []string) (left int64, err error) {
	counts, err := each(ctx, names, func(ctx context.Context, name string) (n int64, err error) {
		key := s.timers.Keys().Of(name).Timeline
		err = s.timers.Again(ctx, func() error {
			n, err = s.timers.RDB.ZCard(ctx, key).Result()
			return scripts.Wrap(ctx, []string{key}, err)
		})
		return n, err
	})
	for _, n := range counts {
		left += n
	}
	return left, err
}

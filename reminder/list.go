package reminder

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// List yields the reminders of a recipient, or with the zero Recipient those of
// all recipients that this node delivers to: first the one-time reminders, ordered
// by Due for each topic, then the recurring ones by name. It reads all of them, so
// it is for operators and tools. A reminder that is not changed is yielded once,
// also by a listing that continues after a Cursor. An error ends it.
func (r *Reminders) List(ctx context.Context, to Recipient, p wakebelltype.Page) iter.Seq2[State, error] {
	return paging.Limited(p, func(yield func(State, error) bool) {
		if r.cfg == nil {
			yield(State{}, ErrDisabled)
			return
		}
		if r.isLocal(to.Address) {
			to.Address = ""
		}
		at, err := r.readCursor(p.After)
		if err != nil {
			yield(State{}, err)
			return
		}
		for _, list := range []iter.Seq2[State, error]{r.listOnce(ctx, to, at), r.listRecurring(ctx, to, at.schedule)} {
			for state, err := range list {
				if !yield(state, err) || err != nil {
					return
				}
			}
		}
	})
}

// cursor is a place in a listing: in a topic of one-time reminders, or, without a
// topic, behind all of them and a recurring one.
type cursor struct {
	topic    string // without the prefix
	timer    timers.Cursor
	schedule string
}

func (c cursor) text() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.topic + "\x00" + string(c.timer) + "\x00" + c.schedule))
}

func (r *Reminders) readCursor(after string) (cursor, error) {
	if after == "" {
		return cursor{topic: r.topics()[0]}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(after)
	parts := strings.SplitN(string(raw), "\x00", 3)
	if err != nil || len(parts) != 3 || parts[0] != "" && !slices.Contains(r.topics(), parts[0]) {
		return cursor{}, argument.Invalid("after", "%s is not a cursor of this listing", argument.Quote(after))
	}
	return cursor{parts[0], timers.Cursor(parts[1]), parts[2]}, nil
}

// listOnce yields the one-time reminders of a recipient.
func (r *Reminders) listOnce(ctx context.Context, to Recipient, at cursor) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		topics := r.topics()
		if at.topic == "" {
			return
		}
		for _, topic := range topics[slices.Index(topics, at.topic):] {
			for page := (timers.Filter{After: at.timer}); ; {
				timers, next, err := r.node.Store.List(ctx, r.node.Prefix+topic, page)
				if err != nil {
					yield(State{}, err)
					return
				}
				for _, t := range timers {
					s, ok := r.parse(t.ID, to)
					if !ok {
						continue
					}
					state := s.state(t)
					state.Cursor = cursor{topic: topic, timer: t.Cursor}.text()
					if !yield(state, nil) {
						return
					}
				}
				if next == "" {
					break
				}
				page.After = next
			}
			at.timer = ""
		}
	}
}

// listRecurring yields the recurring reminders of a recipient.
func (r *Reminders) listRecurring(ctx context.Context, to Recipient, after string) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		for name, err := range r.node.Schedules.Names(ctx, wakebelltype.Page{After: after}) {
			if err != nil {
				yield(State{}, err)
				return
			}
			s, ok := r.parseSchedule(name, to)
			if !ok {
				continue
			}
			state, err := s.recurringState(ctx, false)
			if errors.Is(err, wakebelltype.ErrNotFound) {
				continue // it was deleted meanwhile
			}
			state.Cursor = cursor{schedule: name}.text()
			if !yield(state, err) || err != nil {
				return
			}
		}
	}
}

package recurring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops/audit"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ErrNotFound reports that there is no recurring schedule with this name. It wraps
// wakebell.ErrNotFound.
var ErrNotFound = schedulestore.ErrNoSchedule

// Schedules stores, inspects and fires recurring schedules. It is safe for
// concurrent use, and needs no Close.
//
// With a prefix it adds the prefix to the names of schedules and topics. It finds
// the schedules that were stored with the same prefix, and those of Python
// processes whose name and task begin with it.
//
// Every call may be repeated when its outcome is unknown. Beside the listed
// errors, calls return those of Redis that package wakebell documents, such as
// wakebell.ErrUnavailable.
type Schedules struct {
	store  *schedulestore.Store
	edge   *outgoing.Edge
	manual firing.Manual
	reads  firing.Manual // of Get, List and Names: manual, or with the store of ReadFrom
	audit  *audit.Log
}

// record writes the entry of an operation on a schedule.
func (s *Schedules) record(ctx context.Context, operation wakebelltype.AuditOperation, name string, r audit.Result) {
	s.audit.Record(ctx, operation, s.manual.Full(name), r)
}

// Put stores recurring schedules. Each replaces the one with its name. With the
// same rule it keeps the instants and the number of runs, so that storing it again
// does not delay it; with another rule it starts again. A paused schedule stays
// paused. All schedules are validated before the first is stored; after an error
// of Redis, some may be stored. Errors wrap wakebell.ErrInvalid for a schedule
// that is wrong, or whose name is that of another prefix.
func (s *Schedules) Put(ctx context.Context, schedules ...Schedule) error {
	for _, r := range schedules {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("recurring schedule %s: %w", argument.Quote(r.Name), err)
		}
	}
	return outgoing.Each(ctx, s.edge, "put", withoutStaleMarks(schedules), (*Schedule).outgoing, (*Schedule).apply, s.putAll)
}

// withoutStaleMarks removes the mark of an encoded body from schedules whose body is not
// encoded: it came with the headers of the schedule that they replace.
func withoutStaleMarks(schedules []Schedule) []Schedule {
	schedules = slices.Clone(schedules)
	for i := range schedules {
		s := &schedules[i]
		if _, marked := s.Rule.Headers[payload.Header]; marked && s.ContentType != payload.ContentType {
			s.Rule.Headers = maps.Clone(s.Rule.Headers)
			delete(s.Rule.Headers, payload.Header)
		}
	}
	return schedules
}

// checkBound refuses to keep an encrypted body for another topic, where it could not be
// decoded.
func (s Schedule) checkBound(old *recur.Entry, prefix string) error {
	mark := wakebelltype.Header{Key: payload.Header, Value: s.Rule.Headers[payload.Header]}
	if old == nil || !bytes.Equal(old.Ours.Body, s.Body) || old.Ours.Topic == prefix+s.Topic || !payload.Bound([]wakebelltype.Header{mark}, nil) {
		return nil
	}
	return fmt.Errorf("%w: its stored body is encrypted for the topic %s; give the body again, without the header %s",
		wakebelltype.ErrInvalid, argument.Quote(strings.TrimPrefix(old.Ours.Topic, prefix)), payload.Header)
}

// outgoing returns the schedule as the schedule middleware sees it; nil: not at all.
func (s *Schedule) outgoing() *wakebelltype.Outgoing {
	if s.Celery != nil {
		return nil
	}
	o := &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingRecurring, Topic: s.Topic, ID: s.Name, Body: s.Body, ContentType: s.ContentType,
	}
	for _, key := range slices.Sorted(maps.Keys(s.Rule.Headers)) {
		o.SetHeader(key, s.Rule.Headers[key])
	}
	return o
}

// apply sets what the schedule middleware may change.
func (s *Schedule) apply(o *wakebelltype.Outgoing) {
	s.Body, s.ContentType, s.Rule.Headers = o.Body, o.ContentType, nil
	if len(o.Headers) > 0 {
		s.Rule.Headers = make(map[string]string, len(o.Headers))
	}
	for _, h := range o.Headers {
		s.Rule.Headers[h.Key] = h.Value
	}
}

func (s *Schedules) putAll(ctx context.Context, schedules []Schedule) error {
	var names []string
	var err error
	for _, r := range schedules {
		if err = firing.Again(ctx, func() error { return s.put(ctx, r) }); err != nil {
			err = fmt.Errorf("recurring schedule %s: %w", argument.Quote(r.Name), err)
			break
		}
		names = append(names, r.Name)
	}
	if len(names) > 0 {
		s.record(ctx, wakebelltype.AuditSchedulePut, names[0], audit.Result{
			Count: int64(len(names)), Detail: audit.Details("others", strings.Join(names[1:], " ")), Err: err,
		})
	}
	return err
}

func (s *Schedules) put(ctx context.Context, r Schedule) error {
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	found, err := s.found(ctx, r.Name)
	if err != nil {
		return err
	}
	var old *recur.Entry
	if e, err := recur.Read(found, s.manual.Full(r.Name), s.manual.Zone); err == nil {
		old = &e
	}
	if err := r.checkBound(old, s.manual.Maker.Prefix); err != nil {
		return err
	}
	e, err := r.entry(s.manual.Maker.Prefix, now, old, s.manual.Zone)
	if err != nil {
		return err
	}
	e.Ours.Trace = s.edge.Tracer.Inject(ctx)
	if err := s.manual.Maker.Check(ctx, &e); err != nil {
		return fmt.Errorf("%w: %w", wakebelltype.ErrInvalid, err)
	}
	return s.store.Put(ctx, s.manual.Full(r.Name), found, e.Raw(), firing.ScoreAt(e, now))
}

// found returns the stored bytes that a write of the schedule replaces.
func (s *Schedules) found(ctx context.Context, name string) (recur.Raw, error) {
	raw, err := s.manual.Load(ctx, name)
	if errors.Is(err, ErrNotFound) {
		err = argument.Invalid("name", "%s is the name of a schedule with another prefix", argument.Quote(name))
	}
	return raw, err
}

// Get returns a recurring schedule. Errors: ErrNotFound.
func (s *Schedules) Get(ctx context.Context, name string) (State, error) {
	return s.get(ctx, name, func() (time.Time, error) { return s.store.Now(ctx) })
}

func (s *Schedules) get(ctx context.Context, name string, now func() (time.Time, error)) (State, error) {
	_, e, err := s.reads.Read(ctx, name)
	if errors.Is(err, recur.ErrSyntax) {
		return State{Name: name, Fault: err.Error()}, nil
	}
	if err != nil {
		return State{}, err
	}
	state := s.state(&e)
	return state, state.overdue(now)
}

// List yields the recurring schedules sorted by name, also those that cannot be
// read. A schedule that exists all the time is yielded once, also by a listing that
// continues after a Cursor. It reads all names before it yields the first schedule.
// An error ends it.
func (s *Schedules) List(ctx context.Context, p wakebelltype.Page) iter.Seq2[State, error] {
	return paging.Limited(p, func(yield func(State, error) bool) {
		now := sync.OnceValues(func() (time.Time, error) { return s.store.Now(ctx) })
		for name, err := range s.Names(ctx, wakebelltype.Page{After: p.After}) {
			var state State
			if err == nil {
				state, err = s.get(ctx, name, now)
			}
			if errors.Is(err, ErrNotFound) {
				continue // it was deleted meanwhile
			}
			if err == nil {
				state.Cursor = name
			}
			if !yield(state, err) || err != nil {
				return
			}
		}
	})
}

// Names yields the names of the recurring schedules, sorted, each once. Page.After
// is a name. An error ends it.
func (s *Schedules) Names(ctx context.Context, p wakebelltype.Page) iter.Seq2[string, error] {
	var scans []paging.Scan
	for _, part := range s.reads.Store.Parts() {
		scans = append(scans, func(cursor uint64) ([]string, uint64, error) {
			members, next, err := part.Names(ctx, cursor)
			var names []string
			for _, m := range members {
				if name, ok := strings.CutPrefix(m.Name, s.manual.Maker.Prefix); ok {
					names = append(names, name)
				}
			}
			return names, next, err
		})
	}
	return paging.Limited(p, paging.Names(p.After, scans...))
}

// Delete deletes a recurring schedule. Timers that it fired stay. Errors:
// ErrNotFound.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	found, err := s.remove(ctx, name, nil)
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", ErrNotFound, argument.Quote(name))
	}
	s.record(ctx, wakebelltype.AuditScheduleDelete, name, audit.One("", err))
	return err
}

// remove deletes the schedule if it has this prefix and the condition, if not
// nil, holds. It reports whether it deleted one.
func (s *Schedules) remove(ctx context.Context, name string, condition func(recur.Ours) bool) (found bool, err error) {
	err = firing.Again(ctx, func() error {
		raw, err := s.manual.Load(ctx, name)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if ours, err := recur.ReadOurs(raw.Ours); condition != nil && (err != nil || !condition(ours)) {
			return nil
		}
		found, err = s.store.Delete(ctx, s.manual.Full(name), raw.Ours)
		return err
	})
	return found, err
}

// Pause stops a recurring schedule, for Python beats too, until Resume. A paused
// schedule stays paused when it is paused again. Errors: ErrNotFound.
func (s *Schedules) Pause(ctx context.Context, name string) error {
	return s.enable(ctx, name, false)
}

// Resume ends a pause. The schedule continues with its next instant; runs during
// the pause do not count as missed. Errors: ErrNotFound.
func (s *Schedules) Resume(ctx context.Context, name string) error {
	return s.enable(ctx, name, true)
}

func (s *Schedules) enable(ctx context.Context, name string, on bool) error {
	err := firing.Again(ctx, func() error {
		raw, e, err := s.manual.Read(ctx, name)
		if err != nil || e.Enabled() == on {
			return err
		}
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		e.SetEnabled(on)
		if on {
			e.Skip(now)
		}
		return s.store.Put(ctx, s.manual.Full(name), raw, e.Raw(), firing.ScoreAt(e, now))
	})
	operation := wakebelltype.AuditSchedulePause
	if on {
		operation = wakebelltype.AuditScheduleResume
	}
	s.record(ctx, operation, name, audit.One("", err))
	return err
}

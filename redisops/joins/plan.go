package joins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Timer is a timer that is about to be scheduled. All topics are full ones.
type Timer struct {
	wakebelltype.Part

	Key   string              // its key
	Name  string              // of its join; empty: it has none
	Life  time.Duration       // until its instant at most
	Open  bool                // parts are added to its join later
	Parts []wakebelltype.Part // of its join
	Of    []wakebelltype.Part // the timers of the joins of which it is a part
}

// check checks what does not depend on other timers, so that nothing is written before.
func (t *Timer) check() error {
	if len(t.Of) > maxJoins {
		return tooManyJoins(len(t.Of))
	}
	if err := checkParts("After", t.Part, t.Parts); err != nil {
		return err
	}
	return checkParts("PartOf", t.Part, t.Of)
}

// checkParts checks the parts of a timer, which a field has.
func checkParts(field string, of wakebelltype.Part, parts []wakebelltype.Part) error {
	if len(parts) > MaxParts {
		return argument.Invalid(field, "%d, at most %d of a join", len(parts), MaxParts)
	}
	for n, p := range parts {
		if err := check(Ref{Topic: p.Topic, ID: p.ID}); err != nil {
			return fmt.Errorf("%s: part %d: %w", field, n, err)
		}
		if p == of {
			return argument.Invalid(field, "%s of %s would wait for itself", argument.Quote(p.ID), argument.Quote(p.Topic))
		}
	}
	return nil
}

func tooManyJoins(n int) error {
	return argument.Invalid("PartOf", "%d joins, at most %d", n, maxJoins)
}

// Plan is the joins of timers that one call schedules.
type Plan struct {
	Refs [][]Ref // the joins of which each timer is a part

	list  []Timer
	made  []made
	done  []bool                      // the timers that the call has stored before; nil: none
	again map[wakebelltype.Part][]int // those of done that are parts of other joins, by the timers of these
}

// before reports whether the call has stored a timer before.
func (p *Plan) before(i int) bool { return p.done != nil && p.done[i] }

// made is a join that a call makes.
type made struct {
	of    *Timer
	done  bool // an earlier call with the key has stored its timer
	parts []wakebelltype.Part
	adopt []wakebelltype.Part // those of parts that were scheduled before
}

func (m made) ref() Ref { return Ref{m.of.Topic, m.of.ID, m.of.Name} }

// Prepare makes the joins of timers and adds parts to joins, before the timers are scheduled.
// The caller gives each timer its Headers, schedules those with joins first, and calls Finish.
// Until then no join becomes due before its instant. The key, or nil, is the idempotency key
// with which the timers are scheduled, one of [timers.Key.Each]: what a call with it has
// stored before is not prepared again, because another call may have replaced it by now.
func (s *Store) Prepare(ctx context.Context, key *timers.Key, list []Timer) (Plan, error) {
	p := Plan{Refs: make([][]Ref, len(list)), list: list, again: map[wakebelltype.Part][]int{}}
	var err error
	if p.done, err = s.stored(ctx, key, list); err != nil {
		return p, err
	}
	others, err := p.link(list)
	if err != nil {
		return p, err
	}
	for of, some := range others { // one that is not there is found before another is replaced
		parts := make([]wakebelltype.Part, len(some))
		for k, i := range some {
			parts[k] = list[i].Part
		}
		r, err := s.Add(ctx, Ref{Topic: of.Topic, ID: of.ID}, parts...)
		if err != nil {
			return p, err
		}
		for _, i := range some {
			p.Refs[i] = append(p.Refs[i], r)
		}
	}
	return p, concurrently(ctx, p.made, func(m made) error {
		if m.done {
			return nil
		}
		return s.Create(ctx, m.ref(), m.of.Life, m.parts...)
	})
}

// stored reports which timers a call with the key has stored; nil: none.
func (s *Store) stored(ctx context.Context, key *timers.Key, list []Timer) ([]bool, error) {
	if key == nil {
		return nil, nil
	}
	b := timers.NewBatch("", len(list))
	for i := range list {
		if err := b.Add(list[i].Topic, &timers.Entry{ID: list[i].ID, Key: list[i].Key}); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
	}
	found, err := s.topics.Recall(ctx, key, b)
	if found == nil || err != nil {
		return nil, err
	}
	done := make([]bool, len(list))
	for i := range found {
		done[i] = found[i].ID != ""
	}
	return done, nil
}

// link checks the timers of a call, sets which of their joins have which parts, and returns
// the parts of other joins, as indexes by the timers of these.
func (p *Plan) link(list []Timer) (others map[wakebelltype.Part][]int, err error) {
	at := make(map[wakebelltype.Part]int, len(list))
	for i := range list {
		if err := list[i].check(); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
		at[list[i].Part] = i
	}
	joined := map[wakebelltype.Part]int{} // indexes of made
	for i := range list {
		t := &list[i]
		if t.Name == "" {
			continue
		}
		joined[t.Part] = len(p.made)
		m := made{of: t, done: p.before(i), parts: slices.Clip(t.Parts)}
		for _, part := range t.Parts {
			if j, together := at[part]; together {
				p.Refs[j] = append(p.Refs[j], m.ref())
			} else {
				m.adopt = append(m.adopt, part)
			}
		}
		p.made = append(p.made, m)
	}
	others = map[wakebelltype.Part][]int{}
	for i := range list {
		n := len(p.Refs[i])
		for _, of := range list[i].Of {
			if j, together := joined[of]; together {
				p.made[j].parts = append(p.made[j].parts, list[i].Part)
				p.Refs[i] = append(p.Refs[i], p.made[j].ref())
			} else if p.before(i) {
				p.again[of] = append(p.again[of], i)
			} else {
				others[of] = append(others[of], i)
			}
		}
		if n += len(list[i].Of); n > maxJoins {
			return nil, fmt.Errorf("timer %d: %w", i, tooManyJoins(n))
		}
	}
	for i := range p.made {
		if n := len(p.made[i].parts); n > MaxParts {
			return nil, tooMany(n)
		}
	}
	return others, nil
}

// Finish gives parts that the call has found, instead of storing them, the headers of their
// joins, and closes the joins that Prepare has made. It is called after all timers were
// scheduled, with what became of each. A join that an earlier call has made may have ended or
// been replaced by now.
func (s *Store) Finish(ctx context.Context, p Plan, stored []wakebelltype.Scheduled) error {
	found, err := s.found(ctx, p, stored)
	if err != nil {
		return err
	}
	for i := range p.made {
		r := p.made[i].ref()
		p.made[i].adopt = slices.Concat(p.made[i].adopt, found[r])
		delete(found, r)
	}
	for r, parts := range found {
		if err := s.Adopt(ctx, r, parts...); err != nil {
			return err
		}
	}
	return concurrently(ctx, p.made, func(m made) error {
		err := s.Adopt(ctx, m.ref(), m.adopt...)
		if err == nil && !m.of.Open {
			err = s.Close(ctx, m.ref())
		}
		if m.done && errors.Is(err, wakebelltype.ErrNotFound) {
			return nil
		}
		return err
	})
}

// found returns the parts that were not written, because their policies keep the timers that
// have their ids, or because timers with Once are gone: nothing else tells their nodes of the
// joins.
func (s *Store) found(ctx context.Context, p Plan, stored []wakebelltype.Scheduled) (map[Ref][]wakebelltype.Part, error) {
	parts := map[Ref][]wakebelltype.Part{}
	for i, refs := range p.Refs {
		if kept(stored[i].Outcome) {
			for _, r := range refs {
				parts[r] = append(parts[r], p.list[i].Part)
			}
		}
	}
	for of, some := range p.again {
		some = slices.DeleteFunc(slices.Clone(some), func(i int) bool { return !kept(stored[i].Outcome) })
		if len(some) == 0 {
			continue
		}
		r, _, err := s.Head(ctx, Ref{Topic: of.Topic, ID: of.ID})
		if errors.Is(err, wakebelltype.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, i := range some {
			parts[r] = append(parts[r], p.list[i].Part)
		}
	}
	return parts, nil
}

// kept reports whether scheduling has left the timer with the id as it was.
func kept(o wakebelltype.Outcome) bool {
	switch o {
	case wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeKeptEarlier, wakebelltype.OutcomeAlreadyDone:
		return true
	default:
		return false
	}
}

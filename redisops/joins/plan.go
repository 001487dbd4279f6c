package joins

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Timer is a timer that is about to be scheduled. All topics are full ones.
type Timer struct {
	wakebelltype.Part

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

	made []made
}

// made is a join that a call makes.
type made struct {
	of    *Timer
	parts []wakebelltype.Part
	adopt []wakebelltype.Part // those of parts that were scheduled before
}

func (m made) ref() Ref { return Ref{m.of.Topic, m.of.ID, m.of.Name} }

// Prepare makes the joins of timers and adds parts to joins, before the timers are scheduled.
// The caller gives each timer its Headers, schedules those with joins first, and calls Finish.
// Until then no join becomes due before its instant.
func (s *Store) Prepare(ctx context.Context, timers []Timer) (Plan, error) {
	p := Plan{Refs: make([][]Ref, len(timers))}
	others, err := p.link(timers)
	if err != nil {
		return p, err
	}
	for of, list := range others { // one that is not there is found before another is replaced
		parts := make([]wakebelltype.Part, len(list))
		for k, i := range list {
			parts[k] = timers[i].Part
		}
		r, err := s.Add(ctx, Ref{Topic: of.Topic, ID: of.ID}, parts...)
		if err != nil {
			return p, err
		}
		for _, i := range list {
			p.Refs[i] = append(p.Refs[i], r)
		}
	}
	return p, concurrently(ctx, p.made, func(m made) error { return s.Create(ctx, m.ref(), m.of.Life, m.parts...) })
}

// link checks the timers of a call, sets which of their joins have which parts, and returns
// the parts of other joins, as indexes by the timers of these.
func (p *Plan) link(timers []Timer) (others map[wakebelltype.Part][]int, err error) {
	at := make(map[wakebelltype.Part]int, len(timers))
	for i := range timers {
		if err := timers[i].check(); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
		at[timers[i].Part] = i
	}
	joined := map[wakebelltype.Part]int{} // indexes of made
	for i := range timers {
		t := &timers[i]
		if t.Name == "" {
			continue
		}
		joined[t.Part] = len(p.made)
		m := made{of: t, parts: slices.Clip(t.Parts)}
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
	for i := range timers {
		n := len(p.Refs[i])
		for _, of := range timers[i].Of {
			if j, together := joined[of]; together {
				p.made[j].parts = append(p.made[j].parts, timers[i].Part)
				p.Refs[i] = append(p.Refs[i], p.made[j].ref())
			} else {
				others[of] = append(others[of], i)
			}
		}
		if n += len(timers[i].Of); n > maxJoins {
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

// Finish closes the joins that Prepare has made, after all timers were scheduled.
func (s *Store) Finish(ctx context.Context, p Plan) error {
	return concurrently(ctx, p.made, func(m made) error {
		if err := s.Adopt(ctx, m.ref(), m.adopt...); err != nil || m.of.Open {
			return err
		}
		return s.Close(ctx, m.ref())
	})
}

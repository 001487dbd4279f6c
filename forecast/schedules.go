package forecast

import (
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// project adds the runs of recurring schedules to their topics. Those of Celery are no
// timers.
func (l *load) project(s recurring.Operator, only []string) {
	n := 0
	for state, err := range s.List(l.ctx, wakebelltype.Page{}) {
		if err != nil {
			l.unread = append(l.unread, "recurring schedules: "+err.Error())
			return
		}
		if state.Paused || state.Celery || state.Fault != "" || state.Next.IsZero() || !state.Next.Before(l.end()) || len(only) > 0 && !slices.Contains(only, state.Topic) {
			continue
		}
		if n++; n > mostSchedules {
			l.unread = append(l.unread, "further recurring schedules: there are more than 2000")
			return
		}
		if err := l.projectOne(s, state); err != nil {
			l.unread = append(l.unread, "recurring schedule "+state.Name+": "+err.Error())
		}
	}
}

func (l *load) projectOne(s recurring.Operator, state recurring.State) error {
	from := l.from
	if state.Next.After(from) { // what was due in this minute has been fired
		from = state.Next
	}
	if state.Rule.MaxRuns > 0 { // only a preview knows how many are left
		const most = recurring.MaxBackfill
		left, err := s.Preview(l.ctx, state.Name, int(min(state.Rule.MaxRuns, most)))
		if err != nil || len(left) < most {
			for _, at := range left {
				l.run(state.Topic, at, 1)
			}
			return err
		}
	}
	all, err := s.Instants(l.ctx, state.Name, from, l.end())
	switch {
	case err == nil:
		for _, at := range all {
			l.run(state.Topic, at, 1)
		}
	case errors.Is(err, wakebelltype.ErrInvalid): // they are too many to be listed
		return l.projectMany(s, state)
	}
	return err
}

// projectMany goes on at the pace of the first runs of a schedule that has too many.
func (l *load) projectMany(s recurring.Operator, state recurring.State) error {
	const some = 1000
	first, err := s.Preview(l.ctx, state.Name, some)
	if err != nil || len(first) < some {
		return err
	}
	span := first[some-1].Sub(first[0])
	if span <= 0 {
		return nil
	}
	perMinute := float64(some-1) * float64(time.Minute) / float64(span)
	before := int64(0)
	for i := 0; ; i++ {
		at := first[0].Add(time.Duration(i) * time.Minute)
		if !at.Before(l.end()) {
			return nil
		}
		until := int64(float64(i+1) * perMinute)
		l.run(state.Topic, at, until-before)
		before = until
	}
}

// run adds runs to a topic.
func (l *load) run(topic string, at time.Time, n int64) {
	if i := int(at.Sub(l.from) / time.Minute); !at.Before(l.from) && i < l.bars*l.perBar {
		l.topic(topic).runs[i] += n
	}
}

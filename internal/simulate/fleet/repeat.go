package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
)

// ticks is the topic of recurring schedules. The nodes handle it, and fire them.
const ticks = "ticks"

// series is a recurring schedule, whose name is also the body of its runs.
type series struct {
	name         string
	overlap      recurring.Overlap
	every        time.Duration
	start, until time.Time
	put          outcome
	gone         *span // the call that deletes it; nil: there is none
	deleted      outcome
	asked, more  int // calls that fire a run in addition, and how many of them have done so
}

// overlaps are the rules for a run while the timer of the last one exists.
var overlaps = []recurring.Overlap{recurring.OverlapAllow, recurring.OverlapAllow, recurring.OverlapSkip, recurring.OverlapQueue}

// instants returns when the schedule fires.
func (s *series) instants() (all []time.Time) {
	for at := s.start; !at.After(s.until); at = at.Add(s.every) {
		all = append(all, at)
	}
	return all
}

// runID is the id of a run.
func (s *series) runID(at time.Time) string {
	return s.name + "@" + at.UTC().Format(time.RFC3339Nano)
}

// repeat stores a recurring schedule that begins in some seconds and fires up to a minute long, of
// which none is missed. A quarter of them is deleted before that, and of
// others a run is fired in addition.
func (f *fleet) repeat(o Op) {
	now := time.Now()
	s := &series{name: fmt.Sprintf("series-%d", o.Number), every: time.Duration(3+o.B%15) * time.Second}
	s.overlap = overlaps[f.plan.draw(s.name, len(overlaps))]
	s.start = now.Add(5 * time.Second).Truncate(time.Second)
	s.until = s.start.Add(time.Duration(1+o.C*60/100) * time.Second)
	f.record.mu.Lock()
	f.record.series = append(f.record.series, s)
	f.record.mu.Unlock()
	rule := recurring.Rule{Every: s.every, Start: s.start, Until: s.until, Misfire: recurring.MisfireAll, Overlap: s.overlap}
	schedule := wakebell.NewTopic[string](ticks).Recurring(s.name, rule, s.name)
	s.put = f.aboutSeries(o, s.start, "put "+s.name, func(ctx context.Context, all recurring.Operator) error {
		return all.Put(ctx, schedule)
	})
	if s.put != done {
		return
	}
	// Not at an instant of the schedule: a run in addition has the id of its microsecond.
	<-time.After(time.Until(s.start.Add(s.until.Sub(s.start)*time.Duration(o.A)/100 + time.Millisecond)))
	switch o.C % 4 {
	case 0:
		s.gone = &span{from: time.Now()}
		s.deleted = f.aboutSeries(o, s.until.Add(gatewayTimeout), "delete "+s.name, func(ctx context.Context, all recurring.Operator) error {
			return all.Delete(ctx, s.name)
		})
		s.gone.to = time.Now()
	case 1:
		s.asked++
		if f.once(o, "run "+s.name, func(ctx context.Context, all recurring.Operator) error {
			_, err := all.RunNow(ctx, s.name)
			return err
		}) == done {
			s.more++
		}
	}
}

// schedules returns the recurring schedules as an operation reaches them; nil: its process does not run.
func (f *fleet) schedules(o Op) recurring.Operator {
	if s := f.clients[o.A%len(f.clients)].running(); s != nil && o.C%3 > 0 {
		return s.remote.Schedules()
	}
	if run := f.nodes[o.A%len(f.nodes)].running(); run != nil {
		return run.sys.Client().Schedules()
	}
	return nil
}

// seriesTimeout is the deadline of a call about a recurring schedule.
const seriesTimeout = 2 * time.Second

// once makes a call about a recurring schedule.
func (f *fleet) once(o Op, what string, call func(context.Context, recurring.Operator) error) outcome {
	all := f.schedules(o)
	if all == nil {
		return refused
	}
	ctx, cancel := context.WithTimeout(f.ctx, seriesTimeout)
	defer cancel()
	err := call(ctx, all)
	f.trace("%s: %v", what, err)
	return outcomeOf(err)
}

// aboutSeries repeats a call that may be repeated until it has an answer, or it is too late.
func (f *fleet) aboutSeries(o Op, limit time.Time, what string, call func(context.Context, recurring.Operator) error) outcome {
	how := refused
	for time.Until(limit) > seriesTimeout && f.ctx.Err() == nil {
		switch f.once(o, what, call) {
		case done:
			return done
		case unknown:
			how = unknown
		}
		<-time.After(time.Second / 2)
	}
	return how
}

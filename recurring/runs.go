package recurring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/wakebelltype"
)

// RunNow fires a recurring schedule now, in addition to its instants and also
// while it is paused, and returns the run. It fires once, also when go-redis
// sends the command again after a lost reply. Errors: ErrNotFound.
func (s *Schedules) RunNow(ctx context.Context, name string) (Run, error) {
	fire, err := s.manual.RunNow(ctx, name)
	s.record(ctx, wakebelltype.AuditScheduleRun, name, audit.One("", err))
	return Run{Name: fire.Name, Due: fire.Due, Fired: fire.Fired, Number: fire.Run}, err
}

// Run is a run that was fired.
type Run struct {
	Name   string    // the schedule's name, without the prefix if it begins with it
	Due    time.Time // the instant that the run was fired for
	Fired  time.Time // when it was fired, by Redis's clock
	Number int64     // the number of the run, from 1
}

// Preview returns the next n instants of a recurring schedule, 0 to 10,000, by
// Redis's clock; fewer if it ends before. Errors: ErrNotFound, or one that wraps
// wakebell.ErrInvalid for an n out of range or a rule that takes too long.
func (s *Schedules) Preview(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 0 || n > mostAtOnce {
		return nil, argument.Invalid("n", "%d, want 0 to %d", n, mostAtOnce)
	}
	_, e, err := s.manual.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	e.Within(ctx)
	all := e.Preview(now, n)
	return all, unfound(name, e.Err())
}

// unfound returns the error of instants that were not found within the bounds of a
// rule.
func unfound(name string, err error) error {
	if errors.Is(err, recur.ErrTooMuch) {
		err = fmt.Errorf("%w: recurring schedule %s: %w", wakebelltype.ErrInvalid, argument.Quote(name), err)
	}
	return err
}

// MaxBackfill is the maximum number of runs of one Backfill.
const MaxBackfill = mostAtOnce

// Instants returns the instants of a recurring schedule with from ≤ instant < to, which
// Backfill would fire. Errors: ErrNotFound, or one that wraps wakebell.ErrInvalid for
// more than MaxBackfill instants, or for a rule that takes too long.
func (s *Schedules) Instants(ctx context.Context, name string, from, to time.Time) ([]time.Time, error) {
	if !from.Before(to) {
		return nil, argument.Invalid("from", "it is not before to")
	}
	_, e, err := s.manual.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	e.Within(ctx)
	all, more := e.Between(from, to, MaxBackfill)
	if more {
		return nil, argument.Invalid("from, to", "more than %d runs", MaxBackfill)
	}
	return all, unfound(name, e.Err())
}

// Backfill fires all instants of a recurring schedule with from ≤ instant < to,
// whether they were fired before or not, and returns their number. The runs do not
// count for MaxRuns. Each fires once, also when go-redis sends a command again
// after a lost reply. Errors: ErrNotFound, or one that wraps wakebell.ErrInvalid
// for more than MaxBackfill instants, before the first is fired.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (int, error) {
	if _, err := s.Instants(ctx, name, from, to); err != nil {
		return 0, err
	}
	n, _, err := s.manual.Backfill(ctx, name, from, to, MaxBackfill)
	s.record(ctx, wakebelltype.AuditScheduleBackfill, name, audit.Result{Count: int64(n), Err: err, Detail: audit.Details(
		"from", from.UTC().Format(time.RFC3339), "to", to.UTC().Format(time.RFC3339),
	)})
	return n, err
}

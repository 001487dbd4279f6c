package recurring

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
)

// Next returns the first n instants of a schedule with this rule that is stored at
// now, 0 to 10,000; fewer if it ends before. It calls no Redis, so it shows a rule
// before it is stored. A Crontab or a relative interval without a Zone is in UTC.
// Errors wrap wakebell.ErrInvalid for a rule that is wrong or takes too long, or are
// that of ctx.
func (r Rule) Next(ctx context.Context, now time.Time, n int) ([]time.Time, error) {
	if n < 0 || n > mostAtOnce {
		return nil, argument.Invalid("n", "%d, want 0 to %d", n, mostAtOnce)
	}
	const name = "preview"
	s := Schedule{Name: name, Topic: name, Rule: r}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	e, err := s.entry("", now, nil, time.UTC)
	if err != nil {
		return nil, err
	}
	e.Within(ctx)
	all := e.Preview(now, n)
	return all, unfound(name, e.Err())
}

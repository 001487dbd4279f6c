package peer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// dials bounds the dials on behalf of peers: concurrent attempts, and attempts that
// failed within a minute, per principal, per host and in total. A peer that listens
// at its address uses up none of the latter.
type dials struct {
	trying *limits.Budget
	failed *limits.Budget

	mu     sync.Mutex
	minute time.Time // when the count of failures is reset
}

func newDials() dials {
	return dials{
		trying: limits.NewBudget(limits.Dialing),
		failed: limits.NewBudget(limits.FailedDials),
	}
}

var errTooManyDials = errors.New("too many failed dials to addresses of this peer")

// begin takes a place for a dial. The caller ends it with whether the dial
// succeeded.
func (d *dials) begin(owner, host string) (end func(worked bool), err error) {
	of, failed := limits.Party{Principal: owner, Host: host}, d.failures()
	if err := failed.Take(of, 1); err != nil {
		return nil, fmt.Errorf("%w: %w", errTooManyDials, err)
	}
	if err := d.trying.Take(of, 1); err != nil {
		failed.Give(of, 1)
		return nil, fmt.Errorf("%w: %w", errTooManyDials, err)
	}
	var once sync.Once
	return func(worked bool) {
		once.Do(func() {
			d.trying.Give(of, 1)
			if worked {
				failed.Give(of, 1)
			}
		})
	}, nil
}

// failures returns the budget of the current minute.
func (d *dials) failures() *limits.Budget {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); !now.Before(d.minute) {
		d.minute, d.failed = now.Add(time.Minute), limits.NewBudget(limits.FailedDials)
	}
	return d.failed
}

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/pulse"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// pulseAge is how old the knowledge may be that Redis answers. With the limit of a
	// check, an outage is reported within 3 s.
	pulseAge = time.Second
	// outageLimit bounds the reads of a page while Redis does not answer.
	outageLimit = 2 * time.Second
)

// answers reports whether Redis, or the node, answers: also with an error.
func (d *Dashboard) answers(ctx context.Context) bool {
	for _, err := range d.op.Timers.Topics(ctx, false, wakebelltype.Page{Limit: 1}) {
		return !unanswered(err)
	}
	return ctx.Err() == nil
}

func unanswered(err error) bool {
	return errors.Is(err, wakebell.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// outage is the banner of all pages while Redis does not answer.
type outage struct {
	Since time.Time // of the last answer
	Read  time.Time // when what is shown was read; zero: nothing is shown
}

// outage returns the banner of a page; nil: none. status is that of the answer.
func (d *Dashboard) outage(r *request, status int) *outage {
	age := pulseAge
	if status == http.StatusServiceUnavailable {
		age = 0 // the page has just failed
	}
	state := d.pulse.State(r.Context(), age)
	if !state.Down {
		return nil
	}
	o := &outage{Since: state.Since}
	if status == 0 && r.read != nil {
		o.Read = r.readAt()
	}
	return o
}

// readAt returns when the oldest of what the page shows was read.
func (r *request) readAt() time.Time {
	if r.read == nil {
		return r.now
	}
	return r.read.At(r.now)
}

// outageEvent returns the event of a stream that says whether Redis answers.
func outageEvent(state pulse.State) string {
	if !state.Down {
		return "event: answers\ndata:\n\n"
	}
	return fmt.Sprintf("event: outage\ndata: %q\n\n", state.Since.UTC().Format(time.RFC3339Nano))
}

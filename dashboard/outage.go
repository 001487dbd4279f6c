package dashboard

import (
	"context"
	"encoding/json"
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

// HealthHandler returns a handler of probes, as that of a wakebell.System: GET /livez answers
// 200, and GET /readyz while Redis, or the node, answers, otherwise 503. It has no
// authentication. The dashboard does not serve it: give it an address of its own.
func (d *Dashboard) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, http.StatusOK, true, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		state := d.pulse.State(r.Context(), pulseAge)
		if !state.Down {
			writeHealth(w, http.StatusOK, true, nil)
			return
		}
		writeHealth(w, http.StatusServiceUnavailable, false, []string{"Redis, or the node, does not answer since " + state.Since.UTC().Format(time.RFC3339)})
	})
	return mux
}

func writeHealth(w http.ResponseWriter, status int, ready bool, problems []string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// An error means that the client has gone.
	_ = json.NewEncoder(w).Encode(map[string]any{"live": true, "ready": ready, "problems": append([]string{}, problems...)})
}

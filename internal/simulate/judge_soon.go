package simulate

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// soonest is how long a timer that may run waits at most while nothing goes wrong. It is less
// than the interval of sweeps, so that these do not hide what is wrong.
const soonest = 20 * time.Second

// soon checks that nothing has held up a timer: each that waits has a reason that ends.
func (j *judge) soon(v *version) {
	if j.sim.resting.IsZero() || j.sim.clients[0].resharding() {
		return
	}
	ready := v.due
	for _, at := range []time.Time{j.sim.resting, j.eased, v.made, v.until} {
		if at.After(ready) {
			ready = at
		}
	}
	late := time.Since(ready)
	j.sim.result.Latest = max(j.sim.result.Latest, late)
	most := soonest
	switch j.sim.plan.Shape {
	case Days: // a peer sends no hints
		most += j.sim.plan.Settings.MaxPollingInterval
	case Many: // they wait for handlers, or for others of their keys
		most += time.Duration(j.peak) * 100 * time.Millisecond
	}
	if j.flow.RateLimit > 0 || j.flow.KeyRateLimit > 0 { // the lowest rate is one a second
		most += time.Duration(j.peak) * time.Second
	}
	if late > most {
		j.sim.broken("delivered soon", "%s could have been delivered %v ago", v.id, late)
	}
}

// dueAt reports whether a timer that waits may be due at an instant: its own, or a later one
// if it waits for a token of its key.
func (j *judge) dueAt(v *version, at time.Time) bool {
	if at.Sub(v.due).Abs() <= grain {
		return true
	}
	return at.After(v.due) && v.key != "" && (j.tuned || j.flow.KeyRateLimit > 0)
}

// retuned notes that other limits hold.
func (j *judge) retuned(flow exchange.Flow) {
	j.fixed, j.tuned, j.flow, j.eased = false, true, flow, time.Now()
}

// resharded notes that timers move, and ease that something ends which holds them up.
func (j *judge) resharded() { j.fixed, j.plain = false, false }
func (j *judge) ease()      { j.eased = time.Now() }

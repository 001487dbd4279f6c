package faults

import "time"

// lateSlack is how long before the end of a lease a subscriber may drop it: it checks
// its leases every 100 ms, and counts from the time at which the lease was sent.
const lateSlack = 200 * time.Millisecond

// unseen judges claims before r that reached no handler.
func (j *judge) unseen(t *Timer, g *generation, last, r *Run, claims int) {
	from := g.begun()
	if last != nil {
		from = last.Delivered
	}
	if claims -= j.tooLate(t, r, from, claims); claims == 0 {
		return
	}
	fault, ok := j.swallowed(from, r.Delivered)
	if !ok || r.Delivered.Sub(from) < j.ttl {
		j.violation(&j.Undelivered, "%d claims before attempt %d reached no handler", claims, r.Attempt)
		return
	}
	if last == nil && fault.Kind == Kill {
		j.Recovery = append(j.Recovery, r.Delivered.Sub(fault.From))
	}
}

// tooLate counts the claims before r that a subscriber dropped because their leases
// arrived after their ends.
func (j *judge) tooLate(t *Timer, r *Run, from time.Time, claims int) int {
	attempts := map[int]bool{}
	for _, l := range t.Late {
		before := l.Attempt < r.Attempt && l.Attempt >= r.Attempt-claims && l.Activation.Equal(r.Activation)
		during := l.Delivered.After(from) && !r.Delivered.Before(l.Delivered.Add(j.ttl))
		if before && during && !l.Arrived.Before(l.Delivered.Add(j.ttl-lateSlack)) {
			attempts[l.Attempt] = true
		}
	}
	return len(attempts)
}

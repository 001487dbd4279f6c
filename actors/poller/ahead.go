package poller

import "time"

// ahead decides how many leases a poller claims beyond those that its handlers
// can begin at once, so that quick handlers need not wait for the round trip:
// as many as the handlers finish within aheadFor, at the rate that they had
// lately. A lease that waits longer than patience, because the handlers have
// become slow, goes back to the source for other nodes.
type ahead struct {
	limit int // leases

	since time.Time // when the rate began to be measured
	done  int       // leases done with since then, within patience each
	look  time.Time // when to look for leases that wait too long; zero: none waits
}

const (
	aheadFor = 4 * time.Millisecond
	// rateOver is how long a rate is measured at least.
	rateOver = 5 * time.Millisecond
	maxAhead = 4 * maxClaim
	// Patience is how long a lease may wait for a handler before it is given back.
	Patience = 2 * aheadFor
)

// count notes that a lease is done with. Handlers that take longer than patience
// do not count: many of them that finish together would look like quick ones.
func (a *ahead) count(l *lease, now time.Time) {
	if now.Sub(l.queued) < Patience {
		a.done++
	}
}

// measure sets the limit by the rate, once it has been measured for long enough.
func (a *ahead) measure(now time.Time) {
	took := now.Sub(a.since)
	if took < rateOver {
		return
	}
	a.limit = int(min(int64(a.done)*int64(aheadFor)/int64(took), maxAhead))
	a.since, a.done = now, 0
}

// shed releases the leases that have waited longer than patience for a handler,
// as far as they are more than there are handlers.
func (p *poller) shed(now time.Time) {
	if p.ahead.look.IsZero() || now.Before(p.ahead.look) {
		return
	}
	p.ahead.look = time.Time{}
	oldest := p.run.oldest()
	if oldest.IsZero() {
		return
	}
	if at := oldest.Add(Patience); now.Before(at) {
		p.ahead.look = at
		return
	}
	p.ahead = ahead{since: now}
	p.giveBack(max(0, -p.free()))
}

// giveBack releases the last n leases that no handler has begun.
func (p *poller) giveBack(n int) {
	for _, l := range p.run.takeBack(n) {
		l.stream.drop(l)
		if l.gone == 0 {
			p.release(l)
		}
	}
}

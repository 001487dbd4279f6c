package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Glancer is a Source that can tell at a fraction of the cost of an exchange
// when its first timer is due, as it does for many at a time. A poller that
// has nothing to do glances instead of looking, and looks when there is news.
type Glancer interface {
	// Glance changes nothing. Errors are those of Exchange.
	Glance(ctx context.Context) (exchange.Glance, error)
}

const (
	// glancesPerLook is how many glances in a row stand for a look, which also
	// finds what is left of timers that are gone, and keeps what the source
	// remembers of the stream: for two minutes, five times those of a default ramp.
	glancesPerLook = 20
	// restingFrom is how many looks in vain there were before a glance.
	restingFrom = 2
	// headMoved is by how much the instant of the first timer may differ between
	// two answers by their rounding.
	headMoved = 10 * time.Microsecond
)

// glances is what a poller knows of its source's first timer.
type glances struct {
	head  time.Time // when it is due by the source's clock; zero: there is none
	known bool      // false: the last look found one that is due, or failed
	row   int       // glances since the last look
}

// glanced is the answer to a glance.
type glanced struct {
	epoch    uint64
	stream   *stream
	flight   *flight
	answer   exchange.Glance
	err      error
	received time.Time
}

// mayGlance reports whether the look that f is does as a glance: nothing but the
// idle ramp asks for it, and all that was hinted at has been looked for.
func (p *poller) mayGlance(f *flight, now time.Time) bool {
	if _, can := p.Source.(Glancer); !can || !p.glances.known || p.glances.row >= glancesPerLook {
		return false
	}
	return len(f.request.Settle)+len(f.request.Extend) == 0 && p.pace.resting(now)
}

// glance makes f a glance, which reserves no slots.
func (p *poller) glance(f *flight) {
	f.request.Want, f.glance = 0, true
	p.pace.pollAt = time.Time{}
}

// glanced takes the answer to a glance. News are for a look.
func (p *poller) glanced(m glanced) {
	s, answer, now := m.stream, m.answer, time.Now()
	s.flight = nil
	if m.err != nil {
		p.Counters.errors.Add(1)
		p.glances.known = false
		p.pace.soon(now, 0)
		if errors.Is(m.err, exchange.ErrUnavailable) {
			p.down(m.err)
		} else {
			p.reached()
		}
		return
	}
	p.glances.row++
	p.Counters.glances.Add(1)
	p.Counters.lastExchange.Store(now.UnixNano())
	p.reached()
	if !answer.Now.IsZero() {
		p.clock = clock{source: answer.Now, local: now}
		p.watchClock(m.flight.sent, m.received, answer.Now)
	}
	if p.news(answer, m.flight.sent) {
		p.pace.soon(now, 0)
		return
	}
	p.pace.idle++
	p.pace.pollAt = m.flight.sent.Add(p.pace.ramp())
}

// news reports whether an answer tells of anything but what is known: another
// first timer, or the same one sooner, after a step of the source's clock.
func (p *poller) news(answer exchange.Glance, sent time.Time) bool {
	if answer.Next < 0 || p.glances.head.IsZero() {
		return answer.Next >= 0 || !p.glances.head.IsZero()
	}
	moved := answer.Now.Add(answer.Next).Sub(p.glances.head).Abs()
	return answer.Next == 0 || moved > headMoved || sent.Add(answer.Next+stepAtLeast).Before(p.pace.dueAt)
}

// looked notes what a look told of the first timer.
func (g *glances) looked(r *exchange.Reply) {
	*g = glances{known: r.Next != 0}
	if r.Next > 0 {
		g.head = r.Now.Add(r.Next)
	}
}

// resting reports whether the ramp alone asks for a look, and not the first time.
func (p *pace) resting(now time.Time) bool {
	return !p.backlog && p.askedAt.IsZero() && p.hintAt.IsZero() && p.hints == p.answeredHints &&
		(p.dueAt.IsZero() || now.Before(p.dueAt)) && p.idle >= restingFrom
}

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
type Peeker interface {
	// Glance changes nothing. Errors are those of Exchange.
	Glance(ctx context.Context) (exchange.Glance, error)
}

const (
	// glancesPerLook is how many glances in a row stand for a look, which also
	// finds what is left of timers that are gone, and keeps what the source
	// remembers of the stream: for two minutes, five times those of a default ramp.
	peeksPerClaim = 20
	// restingFrom is how many looks in vain there were before a glance.
	peekAfterEmpty = 2
	// headMoved is by how much the instant of the first timer may differ between
	// two answers by their rounding.
	headMoved = 10 * time.Microsecond
)

// glances is what a poller knows of its source's first timer.
type headState struct {
	due   time.Time // when it is due by the source's clock; zero: there is none
	known bool      // false: the last look found one that is due, or failed
	peeks int       // glances since the last look
}

// glanced is the answer to a glance.
type peeked struct {
	incarnation uint64
	stream      *stream
	flight      *flight
	answer      exchange.Glance
	err         error
	received    time.Time
}

// mayGlance reports whether the look that f is does as a glance: nothing but the
// idle ramp asks for it, and all that was hinted at has been looked for.
func (p *poller) mayPeek(f *flight, now time.Time) bool {
	if _, can := p.Source.(Peeker); !can || !p.head.known || p.head.peeks >= peeksPerClaim {
		return false
	}
	return len(f.request.Settle)+len(f.request.Extend) == 0 && p.pace.idleOnly(now)
}

// glance makes f a glance, which reserves no slots.
func (p *poller) peek(f *flight) {
	f.request.Want, f.peek = 0, true
	p.pace.pollAt = time.Time{}
}

// glanced takes the answer to a glance. News are for a look.
func (p *poller) peekAnswered(m peeked) {
	s, answer, now := m.stream, m.answer, time.Now()
	s.flight = nil
	if m.err != nil {
		p.Counters.errors.Add(1)
		p.head.known = false
		p.pace.pollWithin(now, 0)
		if errors.Is(m.err, exchange.ErrUnavailable) {
			p.redisDown(m.err)
		} else {
			p.redisReachable()
		}
		return
	}
	p.head.peeks++
	p.Counters.peeks.Add(1)
	p.Counters.lastExchange.Store(now.UnixNano())
	p.redisReachable()
	if !answer.Now.IsZero() {
		p.clock = clock{source: answer.Now, local: now}
		p.watchClock(m.flight.sent, m.received, answer.Now)
	}
	if p.headChanged(answer, m.flight.sent) {
		p.pace.pollWithin(now, 0)
		return
	}
	p.pace.emptyPolls++
	p.pace.pollAt = m.flight.sent.Add(p.pace.idleBackoff())
}

// news reports whether an answer tells of anything but what is known: another
// first timer, or the same one sooner, after a step of the source's clock.
func (p *poller) headChanged(answer exchange.Glance, sent time.Time) bool {
	if answer.Next < 0 || p.head.due.IsZero() {
		return answer.Next >= 0 || !p.head.due.IsZero()
	}
	moved := answer.Now.Add(answer.Next).Sub(p.head.due).Abs()
	return answer.Next == 0 || moved > headMoved || sent.Add(answer.Next+minClockStep).Before(p.pace.dueAt)
}

// looked notes what a look told of the first timer.
func (g *headState) claimAnswered(r *exchange.Reply) {
	*g = headState{known: r.Next != 0}
	if r.Next > 0 {
		g.due = r.Now.Add(r.Next)
	}
}

// resting reports whether the ramp alone asks for a look, and not the first time.
func (p *pace) idleOnly(now time.Time) bool {
	return !p.backlog && p.requestedAt.IsZero() && p.hintAt.IsZero() && p.hints == p.answeredHints &&
		(p.dueAt.IsZero() || now.Before(p.dueAt)) && p.emptyPolls >= peekAfterEmpty
}

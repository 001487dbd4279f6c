package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/clockwatch"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Peeker is a Source that can report when its first timer is due at a fraction of
// the cost of an exchange, because it batches the peeks of many topics.
//
// Peeking is a performance feature for nodes with many idle topics: the cost of
// an idle poll drops by an order of magnitude (docs/decisions/0012-peeks.md). A
// poller whose topic is idle peeks instead of claiming, and claims when the first
// timer has changed. Topic.NoPeek switches it off; a Source that is no Peeker has
// none.
type Peeker interface {
	// Peek changes nothing. Errors are those of Exchange.
	Peek(ctx context.Context) (exchange.PeekReply, error)
}

const (
	// peeksPerClaim is how many peeks in a row replace a claim. A claim also
	// detects orphans, and refreshes what the source stores about the stream: for
	// two minutes, five times the span of the default idle backoff.
	peeksPerClaim = 20
	// peekAfterEmpty is the number of empty polls before the first peek.
	peekAfterEmpty = 2
	// headMoved is the rounding error between two readings of the first timer's
	// instant.
	headMoved = 10 * time.Microsecond
)

// headState is what a poller knows of its source's first timer.
type headState struct {
	due   time.Time // by the source's clock; zero: there is none
	known bool      // false: the last claim found it due, or failed
	peeks int       // since the last claim
}

// peeked is the answer to a peek.
type peeked struct {
	incarnation uint64
	stream      *stream
	flight      *flight
	answer      exchange.PeekReply
	err         error
	received    time.Time
}

// mayPeek reports whether a peek suffices for the poll that f is: only the idle
// backoff requests it, and no hint is outstanding.
func (p *poller) mayPeek(f *flight, now time.Time) bool {
	if _, can := p.Source.(Peeker); !can || p.NoPeek || !p.head.known || p.head.peeks >= peeksPerClaim {
		return false
	}
	return len(f.request.Settle)+len(f.request.Extend) == 0 && p.pace.idleOnly(now)
}

// peek turns f into a peek, which reserves no slots.
func (p *poller) peek(f *flight) {
	f.request.Want, f.peek = 0, true
	p.pace.pollAt = time.Time{}
}

// peekAnswered processes the answer to a peek. A change leads to a claim.
func (p *poller) peekAnswered(m peeked) {
	s, answer, now := m.stream, m.answer, time.Now()
	s.flight = nil
	if m.err != nil {
		p.Counters.Errors.Add(1)
		p.head.known = false
		p.pace.pollWithin(now, 0)
		if errors.Is(m.err, exchange.ErrUnavailable) {
			p.redisDown(m.err)
		} else {
			p.redisReachable(m.flight.sent)
		}
		return
	}
	p.head.peeks++
	p.Counters.Peeks.Add(1)
	p.Counters.LastExchange.Store(now.UnixNano())
	p.redisReachable(m.flight.sent)
	if !answer.Now.IsZero() {
		p.clock = clock{source: answer.Now, local: now}
		p.watchClock(m.flight.sent, m.received, answer.Now)
	}
	if m.flight.look {
		p.looked(m.flight, answer, now)
		return
	}
	if p.headChanged(answer, m.flight.sent) {
		p.pace.pollWithin(now, 0)
		return
	}
	p.pace.emptyPolls++
	p.pace.pollAt = m.flight.sent.Add(p.pace.idleBackoff())
}

// headChanged reports whether an answer shows another first timer than the known
// one, or the same one sooner, after a step of the source's clock.
func (p *poller) headChanged(answer exchange.PeekReply, sent time.Time) bool {
	if answer.Next < 0 || p.head.due.IsZero() {
		return answer.Next >= 0 || !p.head.due.IsZero()
	}
	moved := answer.Now.Add(answer.Next).Sub(p.head.due).Abs()
	return answer.Next == 0 || moved > headMoved || sent.Add(answer.Next+clockwatch.MinStep).Before(p.pace.dueAt)
}

// claimAnswered notes what a claim reported about the first timer.
func (g *headState) claimAnswered(r *exchange.Reply) {
	*g = headState{known: r.Next != 0}
	if r.Next > 0 {
		g.due = r.Now.Add(r.Next)
	}
}

// idleOnly reports whether the idle backoff alone requests a poll, and not for
// the first time.
func (p *pace) idleOnly(now time.Time) bool {
	return !p.backlog && p.requestedAt.IsZero() && p.hintAt.IsZero() && p.hints == p.answeredHints &&
		(p.dueAt.IsZero() || now.Before(p.dueAt)) && p.emptyPolls >= peekAfterEmpty
}

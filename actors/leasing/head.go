package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/messages/exchange"
)

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

// head is what is known of the first timer of the topic. It decides whether a peek suffices
// for a poll. Peeking is a performance feature: see poller.Peeker.
type head struct {
	due   time.Time // by the source's clock; zero: there is none
	known bool      // false: the last claim found it due, or failed
	peeks int       // since the last claim
}

// mayPeek reports whether a peek suffices for the next poll: only the idle
// backoff requests it, and no hint is outstanding.
func (c *Core) mayPeek(now time.Time) bool {
	return c.Peeks && !c.NoPeek && c.head.known && c.head.peeks < peeksPerClaim && c.pace.idleOnly(now)
}

// peek turns f into a peek, which reserves no slots.
func (c *Core) peek(f *Flight) {
	f.Peek = true
	c.pace.pollAt = time.Time{}
}

// Peeked processes the answer to a peek. A change leads to a claim.
func (c *Core) Peeked(now time.Time, f *Flight, answer exchange.PeekReply, err error) {
	f.stream.flight = nil
	if err != nil {
		c.Counters.Errors.Add(1)
		c.head.known = false
		c.pace.pollWithin(now, 0)
		c.redisFailed(now, f, err)
		return
	}
	c.head.peeks++
	c.Counters.Peeks.Add(1)
	c.redisAnswered(f)
	if f.look {
		c.looked(f, answer, now)
		return
	}
	if c.headChanged(answer, f.Sent) {
		c.pace.pollWithin(now, 0)
		return
	}
	c.pace.emptyPolls++
	c.pace.pollAt = f.Sent.Add(c.pace.idleBackoff())
}

// headChanged reports whether an answer shows another first timer than the known
// one, or the same one sooner, after a step of the source's clock.
func (c *Core) headChanged(answer exchange.PeekReply, sent time.Time) bool {
	if answer.Next < 0 || c.head.due.IsZero() {
		return answer.Next >= 0 || !c.head.due.IsZero()
	}
	moved := answer.Now.Add(answer.Next).Sub(c.head.due).Abs()
	return answer.Next == 0 || moved > headMoved || sent.Add(answer.Next+observe.MinClockStep).Before(c.pace.dueAt)
}

// claimAnswered notes what a claim reported about the first timer.
func (h *head) claimAnswered(r *exchange.Reply) {
	*h = head{known: r.Next != 0}
	if r.Next > 0 {
		h.due = r.Now.Add(r.Next)
	}
}

// idleOnly reports whether the idle backoff alone requests a poll, and not for
// the first time.
func (p *pace) idleOnly(now time.Time) bool {
	return !p.backlog && p.requestedAt.IsZero() && p.hintAt.IsZero() && p.hints == p.answeredHints &&
		(p.dueAt.IsZero() || now.Before(p.dueAt)) && p.emptyPolls >= peekAfterEmpty
}

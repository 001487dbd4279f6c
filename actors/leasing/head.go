package leasing

import (
	"errors"
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

// head is what is known of the first timer of the topic. It decides whether peeks suffice
// for the next polls. Peeking is a performance feature: see poller.Peeker.
type head struct {
	due   time.Time // by the source's clock; zero: there is none
	known bool      // false: the last claim found it due, or failed
	peeks int       // since the last claim, in watches that have ended, and in looks
	watch *Watch    // in place of polls; nil: none
}

// Watch is a series of peeks at an idle topic. Its caller peeks at once, and passes the answers
// to Answered, which says when to peek again. The core learns only of the end: an idle topic
// costs a peek now and then, and its poller sleeps.
type Watch struct {
	head              // when it began
	dueAt   time.Time // when it is due by the local clock; zero: there is none
	backoff idleBackoff
	random  func() float64
}

// Answered processes the answer to a peek that was sent at an instant. It returns when the
// caller has to peek again, or not ok: the watch has ended, and Core.Watched is next. Unlike
// the methods of a core it may be called by any goroutine, by one at a time.
func (w *Watch) Answered(sent time.Time, answer exchange.PeekReply) (next time.Time, ok bool) {
	w.peeks++
	w.backoff.emptyPolls++
	if w.peeks >= peeksPerClaim || w.changed(answer, sent, w.dueAt) {
		return time.Time{}, false
	}
	return sent.Add(w.backoff.delay(w.random())), true
}

// mayPeek reports whether peeks suffice for the next polls: only the idle backoff
// requests them, and no hint is outstanding.
func (c *Core) mayPeek(now time.Time) bool {
	return c.Peeks && !c.NoPeek && c.head.known && c.head.peeks < peeksPerClaim && c.pace.idleOnly(now)
}

// watch has the caller peek in place of the next polls.
func (c *Core) watch() {
	c.pace.pollAt = time.Time{}
	w := &Watch{head: c.head, dueAt: c.pace.dueAt, backoff: c.pace.idleBackoff, random: c.Random}
	c.Effects.Watch(w)
	c.head.watch = w
}

// endWatch ends the watch, if there is one, before a claim, or because there will be none. The
// idle backoff goes on from there: next is when the watch would have peeked again; zero: a peek
// is in flight.
func (c *Core) endWatch() (next time.Time) {
	w := c.head.watch
	if w == nil {
		return next
	}
	c.head.watch = nil
	if next = c.Effects.EndWatch(); !next.IsZero() { // the caller uses w no more
		c.head.peeks, c.pace.emptyPolls = w.peeks, w.backoff.emptyPolls
	}
	return next
}

// checkWatch ends a watch that does not suffice any more, whose end would lead to no claim, or
// that has the backoff of settings that have changed.
func (c *Core) checkWatch(now time.Time) {
	w := c.head.watch
	if w == nil || !c.outage.down && c.mayClaim(c.streams[0], now) && c.pace.idleOnly(now) &&
		w.backoff.base == c.pace.base && w.backoff.limit == c.pace.limit {
		return
	}
	if c.pace.pollAt = c.endWatch(); c.pace.pollAt.IsZero() {
		c.pace.pollAt = now
	}
}

// Watched processes the end of a watch, with the answer to its last peek or a failure. A
// change leads to a claim.
func (c *Core) Watched(now time.Time, w *Watch, sent time.Time, answer exchange.PeekReply, err error) {
	if w != c.head.watch { // it was ended
		return
	}
	c.head.watch, c.head.peeks, c.pace.emptyPolls = nil, w.peeks, w.backoff.emptyPolls
	switch {
	case err != nil:
		c.peekFailed(now)
		if errors.Is(err, exchange.ErrUnavailable) {
			c.redisDown(now, err)
		}
	case c.head.changed(answer, sent, c.pace.dueAt):
		c.pace.pollWithin(now, 0)
	default:
		c.pace.pollAt = sent.Add(c.pace.idleDelay())
	}
}

// peekFailed has a claim show what is wrong.
func (c *Core) peekFailed(now time.Time) {
	c.Counters.Errors.Add(1)
	c.head.known = false
	c.pace.pollWithin(now, 0)
}

// changed reports whether an answer shows another first timer than the known one, or the
// same one sooner, after a step of the source's clock: dueAt is when it is due by the local one.
func (h *head) changed(answer exchange.PeekReply, sent, dueAt time.Time) bool {
	if answer.Next < 0 || h.due.IsZero() {
		return answer.Next >= 0 || !h.due.IsZero()
	}
	moved := answer.Now.Add(answer.Next).Sub(h.due).Abs()
	return answer.Next == 0 || moved > headMoved || sent.Add(answer.Next+observe.MinClockStep).Before(dueAt)
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

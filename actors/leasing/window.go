package leasing

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// AutomaticWindow is the Topic.Window that follows the load.
const AutomaticWindow time.Duration = -1

// window is a performance feature: timers that are due shortly after one another
// share an exchange, with the settlements of those before them. It decides for how
// long after an exchange that brought timers a poller waits before it sends the next
// one. At 2,000 timers a second it divides the cost of a timer by three
// (docs/performance.md). A Topic.Window of 0 switches it off.
//
// It counts from the last timers, so the first one after a pause never waits. An
// automatic window is closed while the topic is quiet, and opens with the rate of
// timers: from quietRate on, where their exchanges take more than a tenth of a core,
// up to maxWindow at busyRate. It narrows again above enoughTimers in an exchange,
// because larger ones save little.
type window struct {
	fixed time.Duration // AutomaticWindow: it follows the rate
	width time.Duration // the automatic window in force

	since       time.Time // when the current measurement began
	exchanges   int       // answered since then
	timers      int       // that they claimed
	closedUntil time.Time // the window stays closed, because its timers came alone

	streak     int       // exchanges with timers since the last long pause
	lastTimers time.Time // when the last timers came
}

const (
	maxWindow    = 5 * time.Millisecond
	quietRate    = 500.0 // timers a second
	busyRate     = 1000.0
	enoughTimers = 64
	// windowMeasure is the minimum duration of a measurement.
	windowMeasure = 50 * time.Millisecond
	// closedFor is for how long a window stays closed in which timers came alone:
	// where each timer is scheduled by the handler of the one before, waiting only
	// delays them.
	closedFor = time.Second
	// minShared is the number of timers of an exchange from which a window pays.
	minShared = 2
	// maxShare is how long after a delivery its acks may wait for the claim of the next
	// timer, which halves the exchanges of a topic with 10 to 500 timers a second.
	maxShare = 200 * time.Millisecond
	// minStreak is the number of exchanges with timers, none more than maxPause after the
	// one before, from which acks wait.
	minStreak = 4
	maxPause  = time.Second
	// timerStep is how exactly Go's runtime sleeps on Linux while nothing runs: whole
	// milliseconds, by epoll_wait. Before an instant in between it wakes up once too
	// early, then sleeps until up to a millisecond too late, and its monitor thread
	// looks again and again whether it was noticed: a quarter of the client's CPU
	// time at 2,000 timers a second. So windows end when the runtime wakes up anyway.
	timerStep = time.Millisecond
	// timerMargin is by how much the kernel wakes up later than it was asked to.
	timerMargin = 70 * time.Microsecond
	maxStepped  = 100 * time.Millisecond // the longest window that ends in steps
	// windowLease bounds a window, and so the delay of a settlement, as a fraction of
	// the lease.
	windowLease = 10
)

// span is how long after an exchange the next one is sent.
func (w *window) span(leaseTTL time.Duration) time.Duration {
	if w.fixed != AutomaticWindow {
		return min(w.fixed, leaseTTL/windowLease)
	}
	return min(w.width, leaseTTL/windowLease)
}

// answered counts the timers of an exchange, and sets the width from their rate once
// it was measured for long enough.
func (w *window) answered(now time.Time, timers int) {
	w.exchanges++
	w.timers += timers
	if timers > 0 {
		if now.Sub(w.lastTimers) > maxPause {
			w.streak = 0
		}
		w.streak, w.lastTimers = w.streak+1, now
	}
	took := now.Sub(w.since)
	if w.fixed != AutomaticWindow || took < windowMeasure {
		return
	}
	if w.width > 0 && w.timers < minShared*w.exchanges {
		w.closedUntil = now.Add(closedFor)
	}
	w.width = 0
	if !now.Before(w.closedUntil) {
		w.width = widthFor(float64(w.timers) / took.Seconds())
	}
	w.since, w.exchanges, w.timers = now, 0, 0
}

// widthFor is the width of the window at a rate in timers a second.
func widthFor(rate float64) time.Duration {
	if rate <= quietRate {
		return 0
	}
	opened := min((rate-quietRate)/(busyRate-quietRate), 1)
	return min(time.Duration(opened*float64(maxWindow)), time.Duration(enoughTimers/rate*float64(time.Second)))
}

// openWindow opens the window of a stream when an exchange brought timers. Settlements
// alone open none, so timers that come further apart than the window never wait.
func (c *Core) openWindow(s *Stream, f *Flight, timers int, now time.Time) {
	last := s.windowFrom.Add(c.window.span(c.LeaseTTL))
	c.window.answered(now, timers)
	s.windowFrom = time.Time{}
	if timers == 0 {
		return
	}
	s.windowFrom = f.Sent
	if late := f.Sent.Sub(last); late > 0 && late < timerStep+timerMargin {
		s.windowFrom = last // windows that follow one another do not add up their delays
	}
}

// endsWindow reports whether an open window ends at this instant. Long windows end
// rarely, and need no steps.
func (c *Core) endsWindow(at time.Time) bool {
	span := c.window.span(c.LeaseTTL)
	if span <= 0 || span > maxStepped {
		return false
	}
	if at.Equal(c.dueEarly()) {
		return true
	}
	for _, s := range c.streams {
		if s.windowFrom.Add(span).Equal(at) {
			return true
		}
	}
	return false
}

// inSteps moves the end of a window to a whole number of steps from now, at most one later.
func inSteps(now, end time.Time) time.Time {
	steps := (end.Sub(now) - timerMargin + timerStep - 1) / timerStep
	return now.Add(max(steps, 0)*timerStep + timerMargin)
}

// windowUntil is until when the next exchange of a stream waits for its window; in the past:
// it does not, because none is open or because something must not wait: a lease, an operator,
// a handler that waits for the source, or timers that are already late.
func (c *Core) windowUntil(s *Stream) (until time.Time) {
	if s.urgent || s.extendDue || c.pace.backlog || c.paused || c.drain != nil {
		return until
	}
	if until = c.windowEnd(s); !s.settleBy.IsZero() && s.settleBy.Before(until) {
		until = s.settleBy
	}
	return until
}

// nextClaim is when the next timer is due whose claim the acks of a stream can share; in
// the past: they need not wait, because none is known to be due within maxShare.
func (c *Core) nextClaim(s *Stream) (at time.Time) {
	if c.pace.fallback > 0 || c.window.fixed != AutomaticWindow || c.window.streak < minStreak || s.number > 0 || len(s.toSettle) == 0 {
		return at
	}
	for i := range s.toSettle {
		if s.toSettle[i].Kind != exchange.Ack {
			return at
		}
	}
	due := c.pace.nextDue()
	limit := s.deliveredAt.Add(min(maxShare, c.LeaseTTL/windowLease))
	if due.IsZero() || due.After(limit) {
		if span := c.earlySpan(s); span > 0 && !due.IsZero() && !due.After(limit.Add(span)) || len(c.early.leases) > 0 {
			return limit // the acks go with an early claim, or with the acks of kept timers
		}
		return at
	}
	return earlier(due.Add(c.pace.contentionDelay), c.pace.requestedAt)
}

// windowEnd is when the window of a stream ends; in the past: none is open.
func (c *Core) windowEnd(s *Stream) time.Time {
	until := s.windowFrom.Add(c.window.span(c.LeaseTTL))
	if at := c.nextClaim(s); at.After(until) {
		return at
	}
	return until
}

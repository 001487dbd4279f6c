package leasing

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Stream carries exchanges, one at a time. A lease is settled and extended on the
// stream that claimed it, so an extension cannot overtake a settlement.
type Stream struct {
	number      int
	incarnation string // the name under which sequence counts
	sequence    uint64

	flight   *Flight      // in flight; nil: the stream is idle
	held     []*Lease     // claimed on this stream
	toSettle []Settlement // wait for the next exchange

	// unsettled says that an exchange has failed, and the settlements that were
	// queued then are not all written.
	unsettled bool

	windowFrom  time.Time // when the window began; zero: none is open
	urgent      bool      // some of toSettle must not wait for the window
	settleBy    time.Time // when the first lease of toSettle is too old to wait longer; zero: none
	extendDue   bool      // some of held are due for an extension
	deliveredAt time.Time // when leases of this stream were last passed to handlers

	failures int       // failed attempts of flight
	err      error     // of the last failed attempt
	retryAt  time.Time // when flight is sent again; zero: it is sent, or waiting
	waiting  bool      // flight waits until the source is available
}

// Flight is one exchange, or peek of a fallback, in flight. It reserves slots from the moment it
// is sent, so that two exchanges never claim the same slot.
type Flight struct {
	Request  exchange.Request
	Settling []Settlement // in the order of Request.Settle
	Peek     bool         // it is the peek of a fallback: Request is empty
	Sent     time.Time    // just before the source was called; its caller sets it

	stream     *Stream
	extended   []*Lease // in the order of Request.Extend
	hintsSeen  int      // pace.hints when it was composed
	generation uint64   // of the breaker when it was composed
	complete   bool     // it took all queued settlements, and has not failed
	overdue    bool     // it claims what a fallback saw overdue
	checks     []string // ids that a hint named since it was sent; empty: all
}

// Stream is the number of the stream on which the flight is sent.
func (f *Flight) Stream() int { return f.stream.number }

// Settlement is queued for the next exchange.
type Settlement struct {
	Lease  *Lease
	Kind   exchange.Verdict
	Delay  time.Duration
	Reason string
	Began  time.Time     // the handler, by the local clock; zero: there was none
	Took   time.Duration // of the handler

	Panicked bool // the handler did
	Snoozed  bool // a Nack that counts nothing
	Expired  bool // no handler began

	failed   bool // a dead letter whose last delivery counts as a failure
	rejected bool // by the handler
	awaited  bool // the handler waits for the result
}

// streamsFor is the number of streams that a number of slots justifies.
func streamsFor(slots int) int {
	if slots > secondStreamAt {
		return 2
	}
	return 1
}

// openStreams opens as many streams as the number of slots justifies.
func (c *Core) openStreams() {
	for len(c.streams) < streamsFor(c.slots()+c.prefetch.limit) {
		s := &Stream{number: len(c.streams), incarnation: c.NewName()}
		c.streams = append(c.streams, s)
		c.Effects.Open(s.number)
	}
}

func (s *Stream) busy() bool { return s.flight != nil }

// settles reports whether one of the most settlements that the next exchange takes still applies.
// The leases of others were refused when they were to be extended.
func (s *Stream) settles(most int) bool {
	for i := range s.toSettle[:min(len(s.toSettle), most)] {
		if s.toSettle[i].Lease.refused == 0 {
			return true
		}
	}
	return false
}

// empty reports whether an exchange has nothing to do.
func (f *Flight) empty() bool {
	return f == nil || len(f.Request.Settle)+len(f.Request.Extend)+f.Request.Want == 0
}

func (s *Stream) hold(l *Lease) {
	l.stream, l.slot = s, len(s.held)
	s.held = append(s.held, l)
}

func (s *Stream) drop(l *Lease) {
	last := len(s.held) - 1
	s.held[l.slot] = s.held[last]
	s.held[l.slot].slot = l.slot
	s.held[last] = nil
	s.held = s.held[:last]
	l.slot = -1
}

// send numbers a new exchange and transmits it.
func (c *Core) send(s *Stream, f *Flight) {
	if !f.Peek {
		s.sequence++
	}
	f.Request.Incarnation, f.Request.Stream, f.Request.Sequence = s.incarnation, s.number, s.sequence
	f.Request.LeaseTTL, f.Request.Flow, f.Request.Control = c.LeaseTTL, c.Flow, c.override.control
	if f.Request.KeyRun = 0; c.KeyRun > 1 {
		f.Request.KeyRun = c.keyRun()
	}
	f.hintsSeen = c.pace.hints
	s.flight = f
	c.transmit(s)
}

// transmit sends the stream's exchange, for the first time or again.
func (c *Core) transmit(s *Stream) {
	s.retryAt, s.waiting = time.Time{}, false
	c.Effects.Send(s.flight)
}

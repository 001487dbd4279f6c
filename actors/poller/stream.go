package poller

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// stream carries exchanges, one at a time. A lease is settled and extended on the
// stream that claimed it, so an extension cannot overtake a settlement.
type stream struct {
	number      int
	incarnation string // the name under which sequence counts
	sequence    uint64
	requests    chan *flight // to the goroutine that calls the source; capacity 1

	// toPoller sends a message to the poller, until ctx has ended.
	toPoller func(message any)
	ctx      context.Context

	flight   *flight   // in flight; nil: the stream is idle
	blank    *flight   // was composed and had nothing to do; nil: none
	held     []*lease  // claimed on this stream
	toSettle []verdict // wait for the next exchange

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

// verdict is a settlement that is queued for the next exchange.
type verdict struct {
	lease    *lease
	kind     exchange.Verdict
	delay    time.Duration
	reason   string
	failed   bool          // a dead letter whose last delivery counts as a failure
	took     time.Duration // of the handler, if the topic is watched
	rejected bool          // by the handler
	answer   chan<- error  // receives the result; nil: no caller waits
}

// flight is one exchange in flight. It reserves slots from the moment it is sent, so
// that two exchanges never claim the same slot.
type flight struct {
	request    exchange.Request
	settling   []verdict // in the order of request.Settle
	extended   []*lease  // in the order of request.Extend
	hintsSeen  int       // pace.hints when it was composed
	generation uint64    // of the breaker when it was composed
	complete   bool      // it took all queued settlements, and has not failed
	peek       bool      // it is a peek instead of an exchange
	look       bool      // it is the peek of a fallback
	overdue    bool      // it claims what a fallback saw overdue
	checks     []string  // ids that a hint named since it was sent; empty: all
	sent       time.Time // just before the source was called
}

// exchanged is the reply to a flight, or its failure.
type exchanged struct {
	incarnation uint64
	stream      *stream
	flight      *flight
	reply       *exchange.Reply
	err         error

	received time.Time // just after the source answered
}

// granted is when the tokens of a reply to f were given out, by the source's clock.
func (f *flight) granted(r *exchange.Reply) time.Time {
	return r.Now.Add(r.Remaining - f.request.LeaseTTL)
}

func (s *stream) busy() bool { return s.flight != nil }

// blankFlight returns a flight to be composed.
func (s *stream) blankFlight() *flight {
	f := s.blank
	if s.blank = nil; f == nil {
		f = &flight{}
	}
	return f
}

// unlessEmpty returns a composed flight; nil: it has nothing to do.
func (s *stream) unlessEmpty(f *flight) *flight {
	if len(f.request.Settle)+len(f.request.Extend)+f.request.Want == 0 {
		s.blank = f
		return nil
	}
	return f
}

func (s *stream) hold(l *lease) {
	l.stream, l.slot = s, len(s.held)
	s.held = append(s.held, l)
}

func (s *stream) drop(l *lease) {
	last := len(s.held) - 1
	s.held[l.slot] = s.held[last]
	s.held[l.slot].slot = l.slot
	s.held[last] = nil
	s.held = s.held[:last]
	l.slot = -1
}

// serve calls the source until requests is closed. It owns no state: results go
// to the poller as messages.
func (s *stream) serve(ctx context.Context, source Source, incarnation uint64) {
	for f := range s.requests {
		f.sent = time.Now()
		if f.peek {
			answer, err := host.Recovered("peek", func() (exchange.PeekReply, error) { return source.(Peeker).Peek(ctx) })
			s.toPoller(peeked{incarnation: incarnation, stream: s, flight: f, answer: answer, err: err, received: time.Now()})
			continue
		}
		reply, err := host.Recovered("exchange", func() (*exchange.Reply, error) {
			return source.Exchange(ctx, &f.request)
		})
		s.toPoller(exchanged{incarnation: incarnation, stream: s, flight: f, reply: reply, err: err, received: time.Now()})
	}
}

package poller

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// stream carries exchanges, one at a time. A lease is settled and extended on
// the stream that claimed it, so an extension can never overtake a settlement.
type stream struct {
	number      int
	incarnation string // that sequence counts in
	sequence    uint64
	requests    chan *flight // to the goroutine that speaks to the source; holds 1

	// tell sends a message to the poller, until over is done.
	toPoller func(message any)
	ctx      context.Context

	flight   *flight // sent and not answered, or nil
	held     []*lease
	toSettle []verdict

	// behind: an exchange has failed since, and what waited to be settled then
	// has not been settled yet.
	unsettled bool

	extendDue   bool      // some of held are due for an extension
	deliveredAt time.Time // when leases of this stream were last handed out

	failures int       // failed tries of flight
	err      error     // of the last of them
	retryAt  time.Time // when flight is sent again; zero: it is out, or it waits
	waiting  bool      // flight waits for the source to be back
}

// verdict is a settlement that waits for the next exchange.
type verdict struct {
	lease  *lease
	kind   exchange.Verdict
	delay  time.Duration
	reason string
	failed bool          // a Bury that counts as a failure
	took   time.Duration // of the handler, if somebody watches
	answer chan<- error  // told what became of it; nil: nobody waits
}

// flight is one exchange under way. Slots are reserved by it from the moment
// it is sent, so that two exchanges never claim the same slot.
type flight struct {
	request   exchange.Request
	settling  []verdict // same order as request.Settle
	extended  []*lease  // same order as request.Extend
	hintsSeen int       // pace.hints when it was made
	complete  bool      // it took all settlements that waited, and has not failed
	peek      bool      // it is none, but a look from afar
	sent      time.Time // just before the source was called
}

// exchanged is the answer to a flight.
type exchanged struct {
	incarnation uint64
	stream      *stream
	flight      *flight
	reply       *exchange.Reply
	err         error

	received time.Time // just after the source had answered
}

func (s *stream) busy() bool { return s.flight != nil }

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

// serve speaks to the source until requests is closed. It owns no state: what
// it learns goes to the poller as a message.
func (s *stream) serve(ctx context.Context, source Source, incarnation uint64) {
	for f := range s.requests {
		f.sent = time.Now()
		if f.peek {
			answer, err := host.Recovered("glance", func() (exchange.Glance, error) { return source.(Peeker).Glance(ctx) })
			s.toPoller(peeked{incarnation: incarnation, stream: s, flight: f, answer: answer, err: err, received: time.Now()})
			continue
		}
		reply, err := host.Recovered("exchange", func() (*exchange.Reply, error) {
			return source.Exchange(ctx, &f.request)
		})
		s.toPoller(exchanged{incarnation: incarnation, stream: s, flight: f, reply: reply, err: err, received: time.Now()})
	}
}

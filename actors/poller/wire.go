package poller

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages/exchange"
)

// wire calls the source for one stream of the core. Its goroutine ends when the topic is watched,
// and with each peek, and the next flight begins another one: idle topics keep none. Where a node
// has thousands of them, their stacks would be a fifth of the memory.
type wire struct {
	source      Source
	incarnation uint64
	requests    chan *leasing.Flight // capacity 1: a stream has one flight at most
	toPoller    func(message any)    // until the incarnation has ended

	serving bool // a goroutine takes the next request; only the poller accesses it
}

// exchanged is the reply to an exchange, or its failure.
type exchanged struct {
	incarnation uint64
	flight      *leasing.Flight
	reply       *exchange.Reply
	err         error
	received    time.Time // just after the source answered
}

// peeked is the answer to the peek of a fallback, or to the last one of a watch.
type peeked struct {
	incarnation uint64
	flight      *leasing.Flight // nil: of watch
	watch       *leasing.Watch
	sent        time.Time
	answer      exchange.PeekReply
	err         error
	received    time.Time
}

// send has the source called for a flight, in a goroutine that begin begins if there is none.
func (w *wire) send(ctx context.Context, f *leasing.Flight, begin func(func())) {
	if !w.serving {
		begin(func() { w.serve(ctx) })
	}
	w.serving = !f.Peek
	w.requests <- f
}

// rest ends the goroutine, if there is one, after the flight that it serves.
func (w *wire) rest() {
	if w.serving {
		w.serving = false
		w.requests <- nil
	}
}

// serve calls the source until a peek, a nil flight, or until requests is closed. It owns no
// state: results go to the poller as messages.
func (w *wire) serve(ctx context.Context) {
	for f := range w.requests {
		if f == nil {
			return
		}
		if f.Sent = time.Now(); f.Peek {
			answer, err := host.Recovered("peek", func() (exchange.PeekReply, error) { return w.source.(Peeker).Peek(ctx) })
			w.toPoller(peeked{incarnation: w.incarnation, flight: f, sent: f.Sent, answer: answer, err: err, received: time.Now()})
			return
		}
		reply, err := host.Recovered("exchange", func() (*exchange.Reply, error) {
			return w.source.Exchange(ctx, &f.Request)
		})
		w.toPoller(exchanged{incarnation: w.incarnation, flight: f, reply: reply, err: err, received: time.Now()})
	}
}

// exchangeAnswered passes the reply to an exchange on, or its failure.
func (p *poller) exchangeAnswered(m exchanged, now time.Time) {
	if m.err != nil {
		p.core.Failed(now, m.flight, m.err)
		return
	}
	p.sourceAnswered(m.flight.Sent, m.received, m.reply.Now, now)
	p.core.Answered(now, m.received, m.flight, m.reply)
}

// peekAnswered passes the answer to a peek on.
func (p *poller) peekAnswered(m peeked, now time.Time) {
	if m.err == nil {
		p.sourceAnswered(m.sent, m.received, m.answer.Now, now)
	}
	if m.watch != nil {
		p.core.Watched(now, m.watch, m.sent, m.answer, m.err)
		return
	}
	p.core.Peeked(now, m.flight, m.answer, m.err)
}

// sourceAnswered notes what an answer says about the source's clock, and logs a step of it.
// No decision depends on that clock: leases expire by the local monotonic clock, and the
// source decides what is due.
func (p *poller) sourceAnswered(sent, received, source, now time.Time) {
	p.Counters.LastExchange.Store(now.UnixNano())
	if source.IsZero() {
		return
	}
	p.clock = clock{source: source, local: now}
	if step := p.clockWatch.Observe(sent, received, source); step != 0 {
		p.Counters.ClockSteps.Add(1)
		p.Logger.Warn("redis clock stepped; timers are early or late by as much", "by", step.Round(time.Millisecond))
	}
}

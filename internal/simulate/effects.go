package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

var errCut = errors.New("the network has lost it")

// transit is how long the network takes.
func (s *sim) transit() time.Duration { return s.between(100*time.Microsecond, 3*time.Millisecond) }

// cut reports whether the network loses something.
func (s *sim) cut() bool { return s.away() || s.faulty && s.chance(s.plan.Loss) }

// Send carries a flight to Redis and its reply back, unless the network loses one of them. It
// may also deliver the request once more, later.
func (p *poller) Send(f *leasing.Flight) {
	s := p.sim
	f.Sent = time.Now()
	answer := func(after time.Duration, do func(c *leasing.Core)) {
		p.later(after, func() { p.event(do) })
	}
	s.after(s.transit(), func() {
		if s.cut() {
			s.note("%s loses a request of %s", p.name, p.node.name)
			answer(s.transit()+s.plan.Timeout, func(c *leasing.Core) { c.Failed(time.Now(), f, exchange.ErrUnavailable) })
			return
		}
		request := f.Request
		reply, err := p.exchange(&request)
		if s.faulty && s.chance(s.plan.Repeat) {
			copied := request
			s.after(s.between(0, 20*time.Second), func() {
				if s.away() || s.refusing() {
					return
				}
				s.note("%s gets a request of %s once more", p.name, p.node.name)
				reply, err := p.source.Exchange(s.ctx, &copied)
				switch {
				case errors.Is(err, exchange.ErrStale):
				case err != nil:
					s.broken("errors", "an exchange that was delivered once more: %v", err)
				case s.writes > 0: // Redis may have lost the first one
					p.account.exchanged(&copied, reply)
				}
			})
		}
		switch {
		case s.cut():
			s.note("%s loses an answer to %s", p.name, p.node.name)
			answer(s.transit()+s.plan.Timeout, func(c *leasing.Core) { c.Failed(time.Now(), f, exchange.ErrUnavailable) })
		case err != nil:
			answer(s.transit(), func(c *leasing.Core) { c.Failed(time.Now(), f, err) })
		default:
			answer(s.transit(), func(c *leasing.Core) { c.Answered(time.Now(), time.Now(), f, reply) })
		}
	})
}

// Watch peeks until the watch ends: a request or an answer that is lost is a failure.
func (p *poller) Watch(w *leasing.Watch) {
	p.watch = w
	p.peek(w)
}

// EndWatch ends the watch.
func (p *poller) EndWatch() (next time.Time) {
	p.watch = nil
	return p.peekAt
}

// peek peeks once, and again when the watch says so.
func (p *poller) peek(w *leasing.Watch) {
	s, sent := p.sim, time.Now()
	p.peekAt = time.Time{}
	ended := func(after time.Duration, answer exchange.PeekReply, err error) {
		p.later(after, func() { p.event(func(c *leasing.Core) { c.Watched(time.Now(), w, sent, answer, err) }) })
	}
	s.after(s.transit(), func() {
		var answer exchange.PeekReply
		if s.cut() {
			s.note("%s loses a peek of %s", p.name, p.node.name)
			ended(s.transit()+s.plan.Timeout, answer, exchange.ErrUnavailable)
			return
		}
		_, err := s.attempt(func() (err error) {
			answer, err = p.timers.Peek(s.ctx)
			return err
		})
		if err != nil {
			ended(s.transit(), answer, err)
			return
		}
		p.later(s.transit(), func() {
			if p.watch != w {
				return
			}
			next, again := w.Answered(sent, answer)
			if p.peekAt = next; !again {
				p.event(func(c *leasing.Core) { c.Watched(time.Now(), w, sent, answer, nil) })
				return
			}
			p.later(time.Until(next), func() {
				if p.watch == w {
					p.peek(w)
				}
			})
		})
	})
}

// exchange runs an exchange in Redis, and tells the judge.
func (p *poller) exchange(r *exchange.Request) (*exchange.Reply, error) {
	s := p.sim
	s.result.Exchanges++
	if p.timers == nil {
		s.loseNext()
	}
	var reply *exchange.Reply
	refused, err := s.attempt(func() (err error) {
		reply, err = p.source.Exchange(s.ctx, r)
		return err
	})
	switch {
	case refused:
		s.note("%s refuses a request of %s: %v", p.name, p.node.name, err)
		return nil, err
	case errors.Is(err, exchange.ErrStale):
		s.broken("streams", "%s: a request of %s is stale, and it is the last one of its stream", p.name, p.node.name)
	case err != nil:
		s.broken("errors", "an exchange of %s on %s: %v", p.node.name, p.name, err)
	}
	s.note("%s exchanges %d/%d on %s: want %d settle %d extend %d, got %d refused %d next %v held %v", p.node.name, r.Stream, r.Sequence,
		p.name, r.Want, len(r.Settle), len(r.Extend), len(reply.Leases), len(reply.Refused), reply.Next, reply.Held)
	p.account.exchanged(r, reply)
	return reply, nil
}

// ReadOverride reads what operators have set, as a System does.
func (p *poller) ReadOverride() {
	s := p.sim
	s.after(s.transit(), func() {
		if s.cut() {
			p.later(s.plan.Timeout, func() {
				p.event(func(c *leasing.Core) { c.OverrideRead(time.Now(), leasing.Override{}, errCut) })
			})
			return
		}
		var set wakebelltype.Control
		var left time.Duration
		var mark string
		_, err := s.attempt(func() (err error) {
			if set, left, mark, err = p.timers.Control(s.ctx); err != nil {
				return err
			}
			return p.timers.SweepKeys(s.ctx, flowOf(tuning.Override(p.settings().Public(), set.Settings)))
		})
		o := leasing.Override{Paused: set.Paused, PausedFor: left, Mark: mark, Apply: func(to *leasing.Settings) {
			to.Flow = flowOf(tuning.Override(to.Public(), set.Settings))
		}}
		p.later(s.transit(), func() { p.event(func(c *leasing.Core) { c.OverrideRead(time.Now(), o, err) }) })
	})
}

// RemoveOrphans sweeps, as a System does.
func (p *poller) RemoveOrphans() {
	s := p.sim
	if p.sweeps++; s.plan.Shape == Days && !s.plan.Damages && p.sweeps%seldom > 0 {
		p.later(s.transit(), func() { p.event(func(c *leasing.Core) { c.OrphansRemoved(exchange.Swept{}, nil) }) })
		return
	}
	s.after(s.transit(), func() {
		var swept exchange.Swept
		_, err := s.attempt(func() (err error) {
			swept, err = p.source.RemoveOrphans(s.ctx)
			return err
		})
		p.later(s.transit(), func() { p.event(func(c *leasing.Core) { c.OrphansRemoved(swept, err) }) })
	})
}

// Tell tells the supervisor.
func (p *poller) Tell(a leasing.Availability, _ error) {
	v := p.supervisors[0]
	if p.second {
		v = p.supervisors[1]
	}
	p.after(0, func() { v.told(a) })
}

// The topic is not divided, and its state is not reported.

func (p *poller) Open(int)                         {}
func (p *poller) Announce(exchange.AnnounceAction) {}
func (p *poller) AskForHelp(int)                   {}
func (p *poller) Report(bool)                      { p.later(0, func() { p.event((*leasing.Core).Reported) }) }

// NewLease returns a lease with its handler.
func (p *poller) NewLease(claimed *exchange.Lease, _ time.Time) *leasing.Lease {
	return &leasing.Lease{Lease: claimed, Run: &run{poller: p}}
}

// Push queues a lease for the next free handler.
func (p *poller) Push(l *leasing.Lease) { p.queue = append(p.queue, l) }

// Pushed does nothing: handlers begin after each event.
func (p *poller) Pushed(int) {}

// TakeBack returns the last leases of the queue.
func (p *poller) TakeBack(most int) []*leasing.Lease {
	from := max(len(p.queue)-most, 0)
	taken := slices.Clone(p.queue[from:])
	p.queue = p.queue[:from]
	return taken
}

// Oldest is when the first lease of the queue was pushed.
func (p *poller) Oldest() (at time.Time) {
	if len(p.queue) > 0 {
		at = p.queue[0].Queued
	}
	return at
}

// Occupied is 0: handlers are not restarted, and have no batches.
func (p *poller) Occupied() int { return 0 }

// Tune sets how many handlers run at once.
func (p *poller) Tune(concurrency int, _ time.Duration) { p.concurrency = concurrency }

// What operators see does not matter here.

func (p *poller) Settled(*leasing.Flight)                                 {}
func (p *poller) DeadLettered(exchange.DeadLettered, *leasing.Settlement) {}
func (p *poller) Ended(*leasing.Lease, leasing.End)                       {}
func (p *poller) Hung(*leasing.Lease, time.Duration)                      {}
func (p *poller) Abandoned(*leasing.Lease)                                {}
func (p *poller) BreakerChanged(guard.Change, time.Time, string)          {}
func (p *poller) RoleChanged(string, int)                                 {}
func (p *poller) ExchangeFailed(error, int)                               {}

// run is the handler of a lease.
type run struct {
	poller           *poller
	begun, abandoned bool
	cause            error
	expires          time.Time
}

func (r *run) Begun() (bool, time.Time) { return r.begun, time.Time{} }
func (r *run) Awaits() bool             { return false }
func (r *run) Hung() bool               { return false }
func (r *run) Cause() error             { return r.cause }
func (r *run) End(cause error)          { r.cause = cause }
func (r *run) Expires(t time.Time)      { r.expires = t }
func (r *run) Extended(error)           {}
func (r *run) Settled(error)            {}

// Abandon frees the place of a handler that runs for too long.
func (r *run) Abandon() bool {
	if r.begun && !r.abandoned {
		r.abandoned = true
		r.poller.running--
	}
	return true
}

func flowOf(s wakebelltype.Settings) exchange.Flow {
	return exchange.Flow{
		RateLimit: s.RateLimit, RatePer: s.RatePer, RateBurst: s.RateBurst, MaxInFlight: s.MaxInFlight,
		PerKey: s.PerKey, KeyRateLimit: s.KeyRateLimit, KeyRatePer: s.KeyRatePer, KeyRateBurst: s.KeyRateBurst, FairKeys: s.FairKeys,
	}
}

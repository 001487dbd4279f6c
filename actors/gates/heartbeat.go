package gates

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages/gate"
)

// heartbeat is the state of the process's heartbeat in a part: one call for all that
// the process waits for and holds there. During an outage it probes the store.
type heartbeat struct {
	timer    *time.Timer // nil: no heartbeat is needed
	inFlight bool
	answered bool // since the start of this incarnation

	failures int // in a row

	checkAt  time.Time // when tickets are checked next
	checking bool
	recheck  bool // check once more: the check in flight may be too old

	clock storeClock
}

// storeClock is the last reading of the clock of a part.
type storeClock struct {
	store time.Time // the reading
	local time.Time // before it was requested; zero: there is none
}

// read records the store's clock from the reply to a request.
func (c *storeClock) read(store, sent time.Time) { c.store, c.local = store, sent }

// left is at least how long it is until an instant of the store's clock.
func (c *storeClock) left(until time.Time) (d time.Duration, known bool) {
	// It was read after local, so it now shows at most store + the elapsed time.
	return until.Sub(c.store) - time.Since(c.local), !c.local.IsZero()
}

const (
	// checkInterval is the interval at which a process verifies its tickets: a
	// stream may be deleted by hand.
	checkInterval = 10 * time.Second
	// minClockStep is the smallest backward step of the store's clock that is
	// noticed.
	minClockStep = time.Second
	// maxCheckedTickets bounds the tickets of one check, maxHeartbeatTurns the
	// turns of one heartbeat.
	maxCheckedTickets, maxHeartbeatTurns = 500, 500

	firstHeartbeatRetry, maxHeartbeatRetry = 50 * time.Millisecond, 500 * time.Millisecond
)

type (
	heartbeatDue struct {
		incarnation *incarnation
		part        *part
	}
	heartbeatAnswered struct {
		incarnation *incarnation
		part        *part
		turns       []*Turn
		sent        time.Time
		reply       *gate.HeartbeatReply
		err         error
	}
	subscriptionChanged struct { // it is established, or refused
		incarnation *incarnation
		subscribed  bool
	}
	ticketsChecked struct {
		incarnation *incarnation
		part        *part
		tickets     []gate.Held
		places      []gate.Place
		err         error
	}
)

func (p *heartbeat) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = nil
}

func (k *gatekeeper) receiveHeartbeat(message any) {
	switch m := message.(type) {
	case heartbeatDue:
		if m.incarnation == k.incarnation {
			k.sendHeartbeat(m.part)
		}
	case heartbeatAnswered:
		if m.incarnation == k.incarnation {
			k.heartbeatAnswered(m)
		}
	case subscriptionChanged:
		if m.incarnation == k.incarnation {
			k.unsubscribed = !m.subscribed
			for _, p := range k.parts {
				k.checkTickets(p)
			}
		}
	case ticketsChecked:
		if m.incarnation == k.incarnation {
			k.ticketsChecked(m)
		}
	}
}

// heartbeatInterval is the interval of the heartbeat.
func (k *gatekeeper) heartbeatInterval() time.Duration {
	d := min(k.cfg.Presence/4, k.cfg.Lease/3)
	if k.unsubscribed {
		d = min(d, k.cfg.Signal/3)
	}
	return d
}

// startHeartbeat starts the heartbeat of a part if it does not run.
func (k *gatekeeper) startHeartbeat(p *part) {
	if h := &p.heartbeat; h.timer == nil && !h.inFlight {
		h.checkAt = time.Now().Add(backoff.Jitter(checkInterval, 0.3, k.cfg.random()))
		k.heartbeatIn(p, backoff.Jitter(k.heartbeatInterval(), 0.1, k.cfg.random()))
	}
}

func (k *gatekeeper) heartbeatIn(p *part, d time.Duration) {
	incarnation := k.incarnation
	p.heartbeat.stop()
	p.heartbeat.timer = time.AfterFunc(d, func() { incarnation.send(heartbeatDue{incarnation, p}) })
}

func (k *gatekeeper) sendHeartbeat(p *part) {
	h := &p.heartbeat
	h.stop()
	if h.inFlight {
		return
	}
	if len(p.queues) == 0 {
		h.answered = false
		return
	}
	b := &gate.Heartbeat{Process: k.incarnation.process, Part: p.number, Terms: k.cfg.Terms}
	turns := k.toExtend(p)
	for _, t := range turns {
		b.Turns = append(b.Turns, gate.Held{Gate: t.Gate, Ticket: gate.Ticket(t.Fence)})
	}
	h.inFlight = true
	incarnation, store, sent := k.incarnation, k.cfg.Store, time.Now()
	k.gates.io.Go(func() {
		reply, err := host.Recovered("beat", func() (*gate.HeartbeatReply, error) { return store.Heartbeat(incarnation.ctx, b) })
		incarnation.send(heartbeatAnswered{incarnation, p, turns, sent, reply, err})
	})
}

// toExtend returns the turns of a part that have used a third of their lease. Turns that
// the store does not know yet are extended by the requests that report them, and those of
// principals without the right not at all.
func (k *gatekeeper) toExtend(p *part) []*Turn {
	var turns []*Turn
	for _, q := range p.queues {
		if t := q.turn; t != nil && !t.unreported && time.Since(t.confirmed) >= k.cfg.Lease/3-k.heartbeatInterval()/2 && k.mayExtend(t) {
			turns = append(turns, t)
		}
		if len(turns) == maxHeartbeatTurns {
			break
		}
	}
	return turns
}

func (k *gatekeeper) heartbeatAnswered(m heartbeatAnswered) {
	p, h := m.part, &m.part.heartbeat
	h.inFlight = false
	if m.err != nil {
		h.failures++
		if skipped, ok := k.cfg.logLimit.Allow("heartbeat"); ok { // of all parts
			k.cfg.Logger.Warn("gates: heartbeat failed", "err", m.err, "attempt", h.failures, "skipped", skipped)
		}
		k.heartbeatIn(p, min(backoff.Jitter(backoff.Exponential(firstHeartbeatRetry, h.failures-1, maxHeartbeatRetry), 0.2, k.cfg.random()), k.heartbeatInterval()))
		return
	}
	h.failures = 0
	for i, t := range m.turns {
		if t.state == turnHeld && (m.reply.Lost[i] || !t.extend(m.sent, m.sent.Add(k.cfg.Lease))) {
			k.lose(t)
			k.pump(k.queue(t.Gate))
		}
	}
	for _, q := range p.queues {
		if q.blocked {
			k.send(q)
		}
	}
	for _, name := range m.reply.Overdue {
		k.requestPoll(name)
	}
	k.watchClock(p, m.reply.Now, m.sent)
	if k.unsubscribed || m.reply.Lapsed && h.answered || time.Now().After(h.checkAt) {
		k.checkTickets(p)
	}
	h.answered = true
	if len(m.turns) == maxHeartbeatTurns {
		k.sendHeartbeat(p)
		return
	}
	k.heartbeatIn(p, backoff.Jitter(k.heartbeatInterval(), 0.1, k.cfg.random()))
}

// watchClock polls all gates of a part when its clock has stepped back: the instants
// that it wrote before are too far ahead.
func (k *gatekeeper) watchClock(p *part, now, sent time.Time) {
	c := &p.heartbeat.clock
	if by, known := c.left(now); known && by < -minClockStep-time.Since(sent) {
		k.cfg.Logger.Warn("redis clock stepped back", "by", -by)
		for name, q := range p.queues {
			if len(q.waiting) > 0 {
				k.requestPoll(name)
			}
		}
	}
	c.read(now, sent)
}

// storeUnavailable has the heartbeat probe a part of the store.
func (k *gatekeeper) storeUnavailable(p *part, err error) {
	if h := &p.heartbeat; h.failures == 0 && !h.inFlight {
		if skipped, ok := k.cfg.logLimit.Allow("unavailable"); ok { // of all parts
			k.cfg.Logger.Warn("gates: redis does not answer", "err", err, "skipped", skipped)
		}
		k.heartbeatIn(p, firstHeartbeatRetry)
	}
}

// checkTickets asks the store for the state of the waiting tickets of a part.
func (k *gatekeeper) checkTickets(p *part) {
	h := &p.heartbeat
	h.checkAt = time.Now().Add(backoff.Jitter(checkInterval, 0.3, k.cfg.random()))
	if h.checking {
		h.recheck = true
		return
	}
	var tickets []gate.Held
	for name, q := range p.queues {
		for ticket := range q.waiting {
			tickets = append(tickets, gate.Held{Gate: name, Ticket: ticket})
		}
	}
	if len(tickets) == 0 {
		return
	}
	h.checking, h.recheck = true, false
	incarnation, store := k.incarnation, k.cfg.Store
	k.gates.io.Go(func() {
		m := ticketsChecked{incarnation: incarnation, part: p, tickets: tickets}
		for some := range slices.Chunk(tickets, maxCheckedTickets) {
			places, err := host.Recovered("asking for places", func() ([]gate.Place, error) { return store.Places(incarnation.ctx, some) })
			if m.err = err; err != nil {
				break
			}
			m.places = append(m.places, places...)
		}
		incarnation.send(m)
	})
}

// ticketsChecked requests new tickets for those that no longer exist, in their
// order.
func (k *gatekeeper) ticketsChecked(m ticketsChecked) {
	h := &m.part.heartbeat
	h.checking = false
	if m.err != nil {
		k.cfg.Logger.Warn("gates: tickets not checked", "err", m.err)
		h.checkAt = time.Now() // with the next beat
	}
	touched := map[string]*gateQueue{}
	var lost []*waiter
	for i, place := range m.places {
		at := m.tickets[i]
		q := k.queues[at.Gate]
		if q == nil || q.waiting[at.Ticket] == nil {
			continue // it has ended meanwhile
		}
		switch place {
		case gate.Gone:
			lost = append(lost, q.waiting[at.Ticket])
			delete(q.waiting, at.Ticket)
			touched[at.Gate] = q
		case gate.Granted:
			q.poll = true
			touched[at.Gate] = q
		}
	}
	slices.SortFunc(lost, func(a, b *waiter) int { return int(int64(a.ticket) - int64(b.ticket)) })
	for _, w := range lost {
		k.rejoin(k.queues[w.gate], w)
	}
	for _, q := range touched {
		k.pump(q)
	}
	if h.recheck {
		k.checkTickets(m.part)
	}
}

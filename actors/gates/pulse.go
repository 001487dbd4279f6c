package gates

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/gate"
)

// pulse is the process's life as Redis sees it: one call for all that the
// process waits for and holds. While Redis does not answer it is what finds out
// when it does again.
type pulse struct {
	timer  *time.Timer // nil: nothing to live for
	flying bool
	known  bool // a beat has been answered in this life

	failures int // in a row
	deaf     bool

	checkAt  time.Time // when places are checked next
	checking bool
	again    bool // check once more: what is being checked may be from before

	clock storeClock
}

// storeClock is what is known of the store's clock.
type storeClock struct {
	store time.Time // what it said in an answer
	local time.Time // before that was asked for; zero: it was not
}

// read takes what the store's clock said in the answer to what was sent.
func (c *storeClock) read(store, sent time.Time) { c.store, c.local = store, sent }

// left is how long it is at least until an instant of the store's clock.
func (c *storeClock) left(until time.Time) (d time.Duration, known bool) {
	// It was read after local, so now it says at most store + what has passed.
	return until.Sub(c.store) - time.Since(c.local), !c.local.IsZero()
}

const (
	// checkPlaces is how often a process makes sure of its tickets: a stream may
	// be deleted by hand.
	checkPlaces = 10 * time.Second
	// clockStep is how far the store's clock must step back to be noticed.
	clockStep = time.Second
	// placesAtOnce bounds the tickets that one call checks, beatAtOnce the turns
	// that one extends.
	placesAtOnce, beatAtOnce = 500, 500

	firstBeatAgain, maxBeatAgain = 50 * time.Millisecond, 500 * time.Millisecond
)

type (
	beatNow struct{ life *gateLife }
	beaten  struct {
		life  *gateLife
		turns []*Turn
		sent  time.Time
		reply *gate.Pulse
		err   error
	}
	heard struct { // the subscription stands, or is refused
		life *gateLife
		ears bool
	}
	placed struct {
		life    *gateLife
		tickets []gate.Held
		places  []gate.Place
		err     error
	}
)

func (p *pulse) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = nil
}

func (k *gatekeeper) receivePulse(message any) {
	switch m := message.(type) {
	case beatNow:
		if m.life == k.life {
			k.beat()
		}
	case beaten:
		if m.life == k.life {
			k.beaten(m)
		}
	case heard:
		if m.life == k.life {
			k.pulse.deaf = !m.ears
			k.check()
		}
	case placed:
		if m.life == k.life {
			k.placed(m)
		}
	}
}

// beatEvery is how often the process says that it lives.
func (k *gatekeeper) beatEvery() time.Duration {
	d := min(k.cfg.Presence/4, k.cfg.Lease/3)
	if k.pulse.deaf {
		d = min(d, k.cfg.Signal/3)
	}
	return d
}

// beatSoon begins to beat when there is something to live for.
func (k *gatekeeper) beatSoon() {
	if k.pulse.timer == nil && !k.pulse.flying {
		k.pulse.checkAt = time.Now().Add(host.Spread(checkPlaces, 0.3, k.cfg.random()))
		k.beatIn(host.Spread(k.beatEvery(), 0.1, k.cfg.random()))
	}
}

func (k *gatekeeper) beatIn(d time.Duration) {
	life := k.life
	k.pulse.stop()
	k.pulse.timer = time.AfterFunc(d, func() { life.tell(beatNow{life}) })
}

func (k *gatekeeper) beat() {
	p := &k.pulse
	p.stop()
	if p.flying {
		return
	}
	if len(k.queues) == 0 {
		p.known = false
		return
	}
	b := &gate.Beat{Process: k.life.process, Terms: k.cfg.Terms}
	turns := k.toExtend()
	for _, t := range turns {
		b.Turns = append(b.Turns, gate.Held{Gate: t.Gate, Ticket: gate.Ticket(t.Fence)})
	}
	p.flying = true
	life, store, sent := k.life, k.cfg.Store, time.Now()
	k.gates.io.Go(func() {
		reply, err := host.Safely("beat", func() (*gate.Pulse, error) { return store.Beat(life.ctx, b) })
		life.tell(beaten{life, turns, sent, reply, err})
	})
}

// toExtend are the turns that have used a third of their lease. Of those that
// the store does not know yet it is told by requests, which extend them too.
func (k *gatekeeper) toExtend() []*Turn {
	var turns []*Turn
	for _, q := range k.queues {
		if t := q.turn; t != nil && !t.ahead && time.Since(t.confirmed) >= k.cfg.Lease/3-k.beatEvery()/2 {
			turns = append(turns, t)
		}
		if len(turns) == beatAtOnce {
			break
		}
	}
	return turns
}

func (k *gatekeeper) beaten(m beaten) {
	p := &k.pulse
	p.flying = false
	if m.err != nil {
		p.failures++
		k.cfg.Logger.Warn("gates: no beat", "err", m.err, "failures", p.failures)
		k.beatIn(min(host.Spread(host.Doubled(firstBeatAgain, p.failures-1, maxBeatAgain), 0.2, k.cfg.random()), k.beatEvery()))
		return
	}
	p.failures = 0
	for i, t := range m.turns {
		if t.state == turnHeld && (m.reply.Lost[i] || !t.extend(m.sent, m.sent.Add(k.cfg.Lease))) {
			k.lose(t)
			k.pump(k.queue(t.Gate))
		}
	}
	for _, q := range k.queues {
		if q.parked {
			k.fly(q)
		}
	}
	for _, name := range m.reply.Overdue {
		k.look(name)
	}
	k.watchClock(m.reply.Now, m.sent)
	if p.deaf || m.reply.Lapsed && p.known || time.Now().After(p.checkAt) {
		k.check()
	}
	p.known = true
	if len(m.turns) == beatAtOnce {
		k.beat()
		return
	}
	k.beatIn(host.Spread(k.beatEvery(), 0.1, k.cfg.random()))
}

// watchClock looks at all gates when the store's clock has stepped back: the
// instants that it wrote before lie too far ahead.
func (k *gatekeeper) watchClock(now, sent time.Time) {
	c := &k.pulse.clock
	if by, known := c.left(now); known && by < -clockStep-time.Since(sent) {
		k.cfg.Logger.Warn("redis's clock has stepped back", "by", -by)
		for name, q := range k.queues {
			if len(q.waiting) > 0 {
				k.look(name)
			}
		}
	}
	c.read(now, sent)
}

// unreachable has the beat find out when the store is back.
func (k *gatekeeper) unreachable(err error) {
	p := &k.pulse
	if p.failures == 0 && !p.flying {
		k.cfg.Logger.Warn("gates: redis does not answer", "err", err)
		k.beatIn(firstBeatAgain)
	}
}

// check asks what has become of the tickets that wait.
func (k *gatekeeper) check() {
	p := &k.pulse
	p.checkAt = time.Now().Add(host.Spread(checkPlaces, 0.3, k.cfg.random()))
	if p.checking {
		p.again = true
		return
	}
	var tickets []gate.Held
	for name, q := range k.queues {
		for ticket := range q.waiting {
			tickets = append(tickets, gate.Held{Gate: name, Ticket: ticket})
		}
	}
	if len(tickets) == 0 {
		return
	}
	p.checking, p.again = true, false
	life, store := k.life, k.cfg.Store
	k.gates.io.Go(func() {
		m := placed{life: life, tickets: tickets}
		for part := range slices.Chunk(tickets, placesAtOnce) {
			places, err := host.Safely("asking for places", func() ([]gate.Place, error) { return store.Places(life.ctx, part) })
			if m.err = err; err != nil {
				break
			}
			m.places = append(m.places, places...)
		}
		life.tell(m)
	})
}

// placed takes a new place for tickets that are gone, in their order.
func (k *gatekeeper) placed(m placed) {
	k.pulse.checking = false
	if m.err != nil {
		k.cfg.Logger.Warn("gates: tickets could not be checked", "err", m.err)
		k.pulse.checkAt = time.Now() // with the next beat
	}
	touched := map[string]*gateQueue{}
	var lost []*waiter
	for i, place := range m.places {
		at := m.tickets[i]
		q := k.queues[at.Gate]
		if q == nil || q.waiting[at.Ticket] == nil {
			continue // it is over meanwhile
		}
		switch place {
		case gate.Gone:
			lost = append(lost, q.waiting[at.Ticket])
			delete(q.waiting, at.Ticket)
			touched[at.Gate] = q
		case gate.Granted:
			q.look = true
			touched[at.Gate] = q
		}
	}
	slices.SortFunc(lost, func(a, b *waiter) int { return int(int64(a.ticket) - int64(b.ticket)) }) // below 2^53
	for _, w := range lost {
		k.rejoin(k.queues[w.gate], w)
	}
	for _, q := range touched {
		k.pump(q)
	}
	if k.pulse.again {
		k.check()
	}
}

package gates

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/gate"
)

// listen subscribes to the process's signals, at the first request.
func (k *gatekeeper) listen() {
	if k.listening {
		return
	}
	k.listening = true
	incarnation, store := k.incarnation, k.cfg.Store
	k.gates.io.Go(func() {
		host.KeepSubscribed(incarnation.ctx, "listening for turns",
			func() error {
				return store.Listen(incarnation.ctx, incarnation.process,
					func() { incarnation.send(subscriptionChanged{incarnation, true}) },
					func(s gate.Signal) { incarnation.send(signalled{incarnation, s}) })
			},
			func(err error) {
				k.cfg.Logger.Warn("signals refused; turns are found by polling", "err", err, "duration", host.ResubscribeDelay)
				incarnation.send(subscriptionChanged{incarnation, false})
			})
	})
}

// signalReceived starts a turn that was granted by another process's request. The
// grant waits for a confirmation until an instant, and the turn is valid until
// then at first: a turn that ends earlier needs no confirmation. A signal without a ticket
// says that the process has lost its turn or tickets at the gate: these are checked at
// once, because a waiter without a ticket is not in the queue.
func (k *gatekeeper) signalReceived(s gate.Signal) {
	q := k.queue(s.Gate)
	if s.Ticket == 0 && len(q.waiting) > 0 {
		k.checkTickets(q.part)
	}
	w := q.waiting[s.Ticket]
	good, known := q.part.heartbeat.clock.left(s.Until)
	if w == nil || q.turn != nil || !known || good < k.cfg.Signal/2 {
		k.requestPoll(s.Gate)
		return
	}
	now := time.Now()
	delete(q.waiting, s.Ticket)
	k.grant(q, w, now, now.Add(min(good, k.cfg.Signal)), false)
	incarnation, turn := k.incarnation, w.turn
	turn.confirmTimer = time.AfterFunc(k.cfg.Signal/5, func() { incarnation.send(confirm{incarnation, turn}) })
}

package gates

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/gate"
)

// listen subscribes, at the first request.
func (k *gatekeeper) listen() {
	if k.listening {
		return
	}
	k.listening = true
	incarnation, store := k.incarnation, k.cfg.Store
	k.gates.io.Go(func() {
		for incarnation.ctx.Err() == nil {
			_, err := host.Recovered("listening for turns", func() (struct{}, error) {
				return struct{}{}, store.Listen(incarnation.ctx, incarnation.process,
					func() { incarnation.send(subscriptionChanged{incarnation, true}) },
					func(s gate.Signal) { incarnation.send(signalled{incarnation, s}) })
			})
			if incarnation.ctx.Err() != nil {
				return
			}
			k.cfg.Logger.Warn("no signals: turns are found by polling", "err", err, "again_in", host.ResubscribeDelay)
			incarnation.send(subscriptionChanged{incarnation, false})
			select {
			case <-incarnation.ctx.Done():
			case <-time.After(host.ResubscribeDelay):
			}
		}
	})
}

// signalled takes a turn that was granted by somebody else's step. The grant
// waits for a confirmation for a while, and that is how long the turn is good at
// first: a turn that is over by then needs no confirmation.
func (k *gatekeeper) signalReceived(s gate.Signal) {
	q := k.queue(s.Gate)
	w := q.waiting[s.Ticket]
	good, known := k.heartbeat.clock.left(s.Until)
	if w == nil || q.turn != nil || !known || good < k.cfg.Signal/2 {
		k.requestPoll(s.Gate)
		return
	}
	now := time.Now()
	delete(q.waiting, s.Ticket)
	k.grant(q, w, now, now.Add(min(good, k.cfg.Signal)))
	incarnation, turn := k.incarnation, w.turn
	turn.confirmTimer = time.AfterFunc(k.cfg.Signal/5, func() { incarnation.send(confirm{incarnation, turn}) })
}

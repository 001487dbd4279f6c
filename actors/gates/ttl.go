package gates

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
)

// extendTurn prolongs a turn with a ttl, and answers how long it is valid.
func (k *gatekeeper) extendTurn(c actor.Context, m *messages.ExtendTurnRequest) {
	answer := &messages.ExtendTurnResponse{Request: m.GetRequest(), Gate: m.GetGate(), Fence: m.GetFence()}
	w := k.findOwned(c, m.GetGate(), m.GetPlace(), m.GetFence())
	if w != nil && w.turn != nil && w.turn.Fence == m.GetFence() && w.turn.state == turnHeld {
		good := time.Until(w.turn.Until())
		if w.ttl > 0 {
			k.startLapse(w)
			good = min(good, w.ttl)
		}
		if good > 0 && w.turn.ctx.Err() == nil {
			answer.Good = durationpb.New(good)
		}
	}
	if c.Sender() != nil {
		c.Respond(answer)
	}
}

// turnLapsed reports that a turn was not extended in time.
type turnLapsed struct {
	incarnation *incarnation
	waiter      *waiter
}

// startLapse ends the turn of an actor after its ttl, counted from now.
func (k *gatekeeper) startLapse(w *waiter) {
	if w.lapse != nil {
		w.lapse.Stop()
	}
	incarnation := k.incarnation
	w.lapses = time.Now().Add(w.ttl)
	w.lapse = time.AfterFunc(w.ttl, func() { incarnation.send(turnLapsed{incarnation, w}) })
}

func (k *gatekeeper) lapsed(m turnLapsed) {
	t := m.waiter.turn
	if m.incarnation == k.incarnation && t != nil && t.state == turnHeld && !time.Now().Before(m.waiter.lapses) {
		k.lose(t)
		k.pump(k.queue(t.Gate))
	}
}

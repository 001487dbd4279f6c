package reminders

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

func (r *reminders) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.start(c)
	case *actor.Stopping:
		r.stop(poller.ErrStopped)
	case *actor.Restarting:
		r.stop(ErrCrashed)
	case Call:
		r.take(m, c.Sender(), principal.PartyOf(c))
	case Request:
		r.request(m, c.Sender(), principal.PartyOf(c))
	case reminderDone:
		if m.epoch == r.epoch {
			r.done(m)
		}
	case give:
		r.give(m)
	case notAwaited:
		r.answer(m.delivery, nil)
	case undelivered:
		if m.epoch == r.epoch {
			r.answer(m.delivery, ErrUnreachable)
		}
	case *messages.Ack:
		r.acked(m)
	case *messages.Nack:
		r.answer(m.GetDelivery(), m)
	case *messages.Reject:
		r.answer(m.GetDelivery(), m)
	}
	r.pump()
}

func (r *reminders) start(c actor.Context) {
	r.self, r.root = c.Self(), c.ActorSystem().Root
	//nolint:forbidigo // an incarnation's life is its own: it ends when its actor does
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.calls = gateway.NewCalls()
	r.to = map[*gateway.Call]Call{}
	r.who, r.given = map[string]*reminded{}, map[uint64]*handed{}
	// Only so does one learn which message it was: the response to a sender says
	// nothing.
	events, root, self, epoch := c.ActorSystem().EventStream, r.root, r.self, r.epoch
	subscription := events.Subscribe(func(event any) {
		letter, ok := event.(*actor.DeadLetterEvent)
		if !ok {
			return
		}
		if m, ok := letter.Message.(*messages.Reminder); ok {
			root.Send(self, undelivered{epoch, m.GetDelivery()})
		}
	})
	r.deaf = func() { events.Unsubscribe(subscription) }
}

// stop ends what is under way, which answers it, and answers the rest.
func (r *reminders) stop(cause error) {
	if r.cancel == nil {
		return
	}
	r.deaf()
	r.cancel(cause)
	for c, m := range r.to {
		c.Cancel()
		r.refuse(m, c.Sender, gateway.Ended(cause))
	}
	for delivery := range r.given {
		r.answer(delivery, cause)
	}
}

// knows is what is known of an actor; nil of none.
func (r *reminders) knows(id string) *reminded {
	if id == "" {
		return nil
	}
	who := r.who[id]
	if who == nil {
		who = &reminded{given: map[uint64]*handed{}}
		r.who[id] = who
	}
	return who
}

// forget drops what is known of an actor when that is nothing.
func (r *reminders) forget(id string) {
	if who := r.who[id]; who != nil && who.asked == 0 && len(who.given) == 0 {
		delete(r.who, id)
	}
}

// nameOf names an actor; empty: there is none. One that was spawned before its
// system had an address does not have that.
func (r *reminders) nameOf(pid *actor.PID) string {
	switch {
	case pid == nil:
		return ""
	case here(r.root.ActorSystem(), pid):
		return "/" + pid.GetId()
	default:
		return pid.GetAddress() + "/" + pid.GetId()
	}
}

// nowhere is the address of actors of a system that does not listen.
const nowhere = "nonhost"

// here reports whether an actor is of this system.
func here(system *actor.ActorSystem, pid *actor.PID) bool {
	at := pid.GetAddress()
	return at == "" || at == nowhere || at == system.Address()
}

// give hands a reminder out.
func (r *reminders) give(m give) {
	g := &handed{to: r.nameOf(m.to), answers: m.answers}
	r.given[m.message.GetDelivery()] = g
	r.knows(g.to).given[m.message.GetDelivery()] = g
	r.root.RequestWithCustomSender(m.to, m.message, r.self)
}

// answer passes an answer on to who waits for it, or nothing where nobody does,
// and drops those to deliveries that are over.
func (r *reminders) answer(delivery uint64, answer any) {
	g := r.given[delivery]
	if g == nil {
		return
	}
	if answer != nil {
		g.answers <- answer
	}
	delete(r.given, delivery)
	delete(r.who[g.to].given, delivery)
	r.forget(g.to)
}

// acked passes an Ack on when what the actor has asked for is done.
func (r *reminders) acked(m *messages.Ack) {
	g := r.given[m.GetDelivery()]
	if g == nil {
		return
	}
	g.ack = m
	r.settle(g)
}

func (r *reminders) settle(g *handed) {
	switch {
	case g.ack == nil, r.who[g.to].asked > 0:
	case g.failed != "":
		r.answer(g.ack.GetDelivery(), &messages.Nack{Delivery: g.ack.GetDelivery(), Reason: g.failed})
	default:
		r.answer(g.ack.GetDelivery(), g.ack)
	}
}

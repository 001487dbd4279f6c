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
	case Refused:
		r.refuse(Call{Name: m.Request.GetName(), Request: m.Request.GetRequest()}, c.Sender(), m.Fault)
	case reminderDone:
		if m.incarnation == r.incarnation {
			r.done(m)
		}
	case deliver:
		r.deliver(m)
	case abandoned:
		r.answer(m.delivery, nil)
	case undelivered:
		if m.incarnation == r.incarnation {
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
	//nolint:forbidigo // the context lasts as long as the incarnation, which
	// stop ends
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.calls = gateway.NewCalls()
	r.queued = map[*gateway.Call]Call{}
	r.recipients, r.deliveries = map[string]*recipient{}, map[uint64]*delivery{}
	// Only the event stream names the message: the response to a sender does not.
	events, root, self, incarnation := c.ActorSystem().EventStream, r.root, r.self, r.incarnation
	subscription := events.Subscribe(func(event any) {
		letter, ok := event.(*actor.DeadLetterEvent)
		if !ok {
			return
		}
		if m, ok := letter.Message.(*messages.Reminder); ok {
			root.Send(self, undelivered{incarnation, m.GetDelivery()})
		}
	})
	r.unsubscribe = func() { events.Unsubscribe(subscription) }
}

// stop ends the running calls, which answers them, and answers the rest.
func (r *reminders) stop(cause error) {
	if r.cancel == nil {
		return
	}
	r.unsubscribe()
	r.cancel(cause)
	for c, m := range r.queued {
		c.Cancel()
		r.refuse(m, c.Sender, gateway.Ended(cause))
	}
	for delivery := range r.deliveries {
		r.answer(delivery, cause)
	}
}

// recipient returns the state of an actor; nil: the id is empty.
func (r *reminders) recipient(id string) *recipient {
	if id == "" {
		return nil
	}
	who := r.recipients[id]
	if who == nil {
		who = &recipient{deliveries: map[uint64]*delivery{}}
		r.recipients[id] = who
	}
	return who
}

// forget drops the state of an actor when it is empty.
func (r *reminders) forget(id string) {
	if who := r.recipients[id]; who != nil && who.calls == 0 && len(who.deliveries) == 0 {
		delete(r.recipients, id)
	}
}

// keyOf returns a key for an actor; empty: there is none. A PID that was created
// before its system had an address has no address.
func (r *reminders) keyOf(pid *actor.PID) string {
	switch {
	case pid == nil:
		return ""
	case isLocal(r.root.ActorSystem(), pid):
		return "/" + pid.GetId()
	default:
		return pid.GetAddress() + "/" + pid.GetId()
	}
}

// unaddressed is the address of the actors of a system without a remote.
const unaddressed = "nonhost"

// isLocal reports whether an actor is in this system.
func isLocal(system *actor.ActorSystem, pid *actor.PID) bool {
	at := pid.GetAddress()
	return at == "" || at == unaddressed || at == system.Address()
}

// deliver sends a reminder to its recipient.
func (r *reminders) deliver(m deliver) {
	g := &delivery{recipient: r.keyOf(m.to), answers: m.answers}
	r.deliveries[m.message.GetDelivery()] = g
	r.recipient(g.recipient).deliveries[m.message.GetDelivery()] = g
	r.root.RequestWithCustomSender(m.to, m.message, r.self)
}

// answer passes an answer to the waiting caller, or nothing if it is nil, and
// drops answers to finished deliveries.
func (r *reminders) answer(delivery uint64, answer any) {
	g := r.deliveries[delivery]
	if g == nil {
		return
	}
	if answer != nil {
		g.answers <- answer
	}
	r.env.Metrics.Reminded(r.ctx, outcomeOf(answer))
	delete(r.deliveries, delivery)
	delete(r.recipients[g.recipient].deliveries, delivery)
	r.forget(g.recipient)
}

// outcomeOf names an answer for the metrics; nil: the caller did not wait for it.
func outcomeOf(answer any) string {
	switch answer.(type) {
	case *messages.Ack:
		return "ack"
	case *messages.Nack:
		return "retry"
	case *messages.Reject:
		return "rejected"
	case error:
		return "unreachable"
	}
	return "abandoned"
}

// acked passes an Ack on when the recipient's earlier calls are done.
func (r *reminders) acked(m *messages.Ack) {
	g := r.deliveries[m.GetDelivery()]
	if g == nil {
		return
	}
	g.ack = m
	r.settle(g)
}

func (r *reminders) settle(g *delivery) {
	switch {
	case g.ack == nil, r.recipients[g.recipient].calls > 0:
	case g.failed != "":
		r.answer(g.ack.GetDelivery(), &messages.Nack{Delivery: g.ack.GetDelivery(), Reason: g.failed})
	default:
		r.answer(g.ack.GetDelivery(), g.ack)
	}
}

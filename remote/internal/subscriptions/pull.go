package subscriptions

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// A caller of HTTP pulls: it subscribes for one answer, and settles the leases by later
// calls. Between them its subscription is detached, as that of a peer whose link broke:
// it receives nothing, and keeps its leases until they are settled or expire.

type (
	// Pull is a subscription that ends with a Detach. It is answered as the
	// SubscribeRequest in it.
	Pull struct{ *messages.SubscribeRequest }
	// Detach ends the deliveries to a subscriber, which keeps its leases. It is answered
	// with Detached, after all leases that were delivered before.
	Detach struct{ Topic, Subscriber string }
	// Detached answers Detach.
	Detached struct{}
	// Settle settles or extends a lease by its delivery. It is answered with Settled.
	Settle struct {
		Topic, Subscriber string
		Delivery          uint64
		Verdict           any // a *messages.Ack, Nack, Reject, Release or Extend
	}
	// Settled answers Settle, when Redis has the extension, or else at once.
	Settled struct {
		Held  bool            // the subscriber had the lease
		Fault *messages.Error // why the verdict was refused; nil: it was not
		TTL   time.Duration   // of an extended lease
	}

	// lingerOver ends the time for which a topic stays open for the next Pull.
	lingerOver struct{}
)

// detachPulled answers a Detach. The topic stays open for a while: a caller that pulls
// again would otherwise close and open it each time.
func (h *hub) detachPulled(c actor.Context, m Detach, owner string) {
	if s := h.subscribers[subscriberKey{owner: owner, name: m.Subscriber}]; s != nil && s.to != nil {
		h.flush() // before the answer
		c.Unwatch(s.to)
		h.lingerUntil = time.Now().Add(topicGrace)
		root, self, ctx := h.root, h.self, h.ctx
		time.AfterFunc(topicGrace, func() {
			if ctx.Err() == nil {
				root.Send(self, lingerOver{})
			}
		})
		h.detach(s)
	}
	c.Respond(Detached{})
}

// lingers reports whether the topic stays open without subscribers.
func (h *hub) lingers() bool { return time.Now().Before(h.lingerUntil) }

// settle carries out a verdict about a lease that a caller has pulled.
func (h *hub) settle(c actor.Context, m Settle, owner string) {
	l := h.held[m.Delivery]
	if l == nil || l.of == nil || l.of.key != (subscriberKey{owner: owner, name: m.Subscriber}) || !time.Now().Before(l.lease.Until()) {
		c.Respond(Settled{})
		return
	}
	if _, more := m.Verdict.(*messages.Extend); more {
		l.extending = append(l.extending, c.Sender())
		l.lease.Extend()
		return
	}
	if ack, is := m.Verdict.(*messages.Ack); is && ack.GetResult() != nil && h.tuning.queue != nil {
		c.Respond(Settled{Held: true, Fault: messages.Failure(messages.Code_CODE_INVALID, "result: messages of queues have none")})
		return
	}
	l.lease.Answer(m.Verdict)
	h.free(l)
	c.Respond(Settled{Held: true})
	h.deal()
	h.tune()
}

// answerExtending answers the callers that extend a lease.
func (h *hub) answerExtending(l *held, with Settled) {
	for _, pid := range l.extending {
		h.root.Send(pid, with)
	}
	l.extending = nil
}

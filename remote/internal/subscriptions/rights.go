package subscriptions

import (
	"slices"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/rights"
)

// rightsChanged ends the subscriptions of principals without the right to handle the
// topic, and releases their leases.
func (h *hub) rightsChanged() {
	kind := rights.KindTopic
	if h.tuning.queue != nil {
		kind = rights.KindQueue
	}
	granted := h.guard.Rights.Load()
	for _, s := range h.subscribers {
		if _, ok := granted.Allow(s.key.owner, rights.ActionHandle, kind, h.topic); ok || s.key.ended != 0 {
			continue
		}
		h.revoke(s)
	}
}

// revoke ends a subscription, and notifies its subscriber of that and of each lease that
// it held: one without leases would wait for ever. The subscriber subscribes again until
// it has the right.
func (h *hub) revoke(s *subscriber) {
	fault := messages.Failure(messages.Code_CODE_FORBIDDEN, "the right to handle "+h.topic+" was withdrawn")
	for _, a := range h.asked {
		if a.of == s {
			refusal := messages.Failure(fault.GetCode(), fault.GetMessage())
			refusal.Request = a.message.GetRequest()
			h.root.Send(a.sender, refusal)
		}
	}
	h.asked = slices.DeleteFunc(h.asked, func(a asked) bool { return a.of == s })
	to, ended := s.to, []*messages.LeaseEnded(nil)
	for _, l := range h.held {
		if l.of == s {
			ended = append(ended, &messages.LeaseEnded{Id: l.lease.GetId(), Delivery: l.lease.GetDelivery()})
		}
	}
	h.endSubscription(s)
	if to != nil {
		h.root.Send(to, &messages.LeasesEnded{
			Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Ended: ended, Subscription: fault,
		})
	}
}

// RightsChanged makes hubs end the subscriptions that are no longer permitted.
type RightsChanged struct{}

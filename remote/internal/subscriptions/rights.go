package subscriptions

import (
	"slices"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/rights"
)

// rightsChanged ends the subscriptions of principals without the right to handle the
// topic, or without a token.
func (h *hub) rightsChanged() {
	kind := rights.KindTopic
	if h.tuning.queue != nil {
		kind = rights.KindQueue
	}
	for _, s := range h.subscribers {
		if !h.guard.MayHandle(s.key.owner, kind, h.topic) {
			h.revoke(s)
		}
	}
}

// revoke ends a subscription, and notifies its subscriber of that and of each lease that
// it held: one without leases would wait for ever. The subscriber subscribes again until
// it has the right. Its leases expire: the notification may be late, and a consumer over HTTP
// gets none, while a handler goes on. Those that were not sent are released, and so are those of a
// claim over HTTP that was not answered: it fails.
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
	to, ended, sent := s.to, []*messages.LeaseEnded(nil), []uint64(nil)
	for delivery, l := range h.held {
		if l.of == s && l.sent {
			ended = append(ended, &messages.LeaseEnded{Id: l.lease.GetId(), Delivery: delivery})
			if !s.pulls || s.to == nil {
				sent = append(sent, delivery)
			}
		}
	}
	h.endSubscription(s, sent...)
	if to != nil {
		h.root.Send(to, &messages.LeasesEnded{
			Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Ended: ended, Subscription: fault,
		})
	}
}

// RightsChanged makes hubs end the subscriptions that are no longer permitted.
type RightsChanged struct{}

package remote

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// permit decides whether a caller's request is carried out: every way in asks it
// before the request goes to an actor. It writes into the request which keys its
// queue has. Nil: it is carried out.
func (g *guard) permit(w who, request proto.Message) *messages.Error {
	if err := g.allowed(w, request); err != nil {
		return g.refusal(request, err)
	}
	if err := g.queues.settle(request); err != nil {
		return g.refusal(request, err)
	}
	return nil
}

func (g *guard) refusal(request proto.Message, err error) *messages.Error {
	fault := wakebell.ErrorMessage(err)
	if asked, ok := request.(question); ok {
		fault.Request = asked.GetRequest()
	}
	return fault
}

// allowed reports what of the caller's rights is missing for a request.
func (g *guard) allowed(w who, request proto.Message) error {
	rights := g.rights.Load()
	if rights == nil {
		return nil
	}
	of, known := needs[fullName(request)]
	if !known {
		return fmt.Errorf("%w: nothing allows a %s", errForbidden, request.ProtoReflect().Descriptor().Name())
	}
	for _, n := range of(request) {
		if !rights.has(w.owner, n) {
			return fmt.Errorf("%w: %q may not %s", errForbidden, clip(w.owner), n)
		}
	}
	return nil
}

func (n need) String() string {
	name := fmt.Sprintf("%q", clip(n.name))
	if n.every {
		name = "*"
	}
	return fmt.Sprintf("%s %s %s", n.action, listed("", n.kinds), name)
}

// has reports whether a principal has what a request needs.
func (r *Rights) has(principal string, n need) bool {
	for _, kind := range n.kinds {
		if n.every && r.all(principal, n.action, kind) {
			return true
		}
		if _, ok := r.Allow(principal, n.action, kind, n.name); ok && !n.every {
			return true
		}
	}
	return false
}

// sees reports whether a caller finds a name in a listing.
func (g *guard) sees(principal string, kind Kind, name string) bool {
	rights := g.rights.Load()
	if rights == nil {
		return true
	}
	_, ok := rights.Allow(principal, ActionRead, kind, name)
	return ok
}

// visible is what of an answer a principal may read: the answers of the gateway that
// list names.
func (g *guard) visible(principal string, answer any) any {
	page, ok := answer.(*messages.ListRecurringResponse)
	if !ok || g.rights.Load() == nil {
		return answer
	}
	seen := &messages.ListRecurringResponse{Request: page.GetRequest(), Next: page.GetNext()}
	for _, s := range page.GetSchedules() {
		if g.sees(principal, KindSchedule, s.GetName()) {
			seen.Schedules = append(seen.Schedules, s)
		}
	}
	return seen
}

// visibleAt is visible to the peer at an address.
func (g *guard) visibleAt(address string, answer any) any {
	if _, page := answer.(*messages.ListRecurringResponse); !page {
		return answer
	}
	p, ok := g.peers.at(address)
	if !ok {
		return answer // which is delivered to nobody
	}
	return g.visible(p.owner, answer)
}

// deny tells the sender of a message that it was not carried out; where nobody waits
// for an answer it is written down.
func (g *guard) deny(ctx context.Context, w who, request proto.Message, fault *messages.Error, answer func(proto.Message)) {
	switch m := request.(type) {
	case *messages.SetReminderRequest:
		answer(&messages.ReminderFailed{Request: m.GetRequest(), Name: m.GetName(), Error: fault})
	case *messages.ForgetReminderRequest:
		answer(&messages.ReminderFailed{Request: m.GetRequest(), Name: m.GetName(), Error: fault})
	default:
		if answer != nil && isAnswered[fullName(request)] {
			answer(fault)
			return
		}
		g.note(ctx, w, errors.New(fault.GetMessage()))
	}
}

// rightsChanged ends the subscriptions of those who may not handle the topic any
// more, and gives back what they hold.
func (h *hub) rightsChanged() {
	kind := KindTopic
	if h.tuning.queue != nil {
		kind = KindQueue
	}
	rights := h.guard.rights.Load()
	for _, s := range h.subscribers {
		if _, ok := rights.Allow(s.key.owner, ActionHandle, kind, h.topic); ok {
			continue
		}
		h.dismiss(s)
	}
}

// dismiss ends a subscription, and tells its subscriber of each lease that it held.
func (h *hub) dismiss(s *subscriber) {
	to, ended := s.to, []*messages.LeaseEnded(nil)
	for _, l := range h.held {
		if l.of == s {
			ended = append(ended, &messages.LeaseEnded{Id: l.lease.GetId(), Delivery: l.lease.GetDelivery()})
		}
	}
	h.giveUp(s)
	if to != nil && len(ended) > 0 {
		h.root.Send(to, &messages.LeasesEnded{Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Ended: ended})
	}
}

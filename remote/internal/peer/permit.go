package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
)

var errForbidden = fmt.Errorf("%w by the rights of this node", wakebell.ErrForbidden)

// Permit decides whether a caller's request is carried out. Every entry point calls
// it before the request goes to an actor. It sets the keys of the queue in the
// request. It returns nil if the request is permitted.
func (g *Guard) Permit(w Caller, request proto.Message) *messages.Error {
	if err := g.Allowed(w, request); err != nil {
		return g.refusal(request, err)
	}
	if err := g.Reminders.Check(request); err != nil {
		return g.refusal(request, err)
	}
	if err := g.Queues.Settle(request); err != nil {
		return g.refusal(request, err)
	}
	return nil
}

func (g *Guard) refusal(request proto.Message, err error) *messages.Error {
	fault := convert.ErrorMessage(err)
	if asked, ok := request.(wire.Question); ok {
		fault.Request = asked.GetRequest()
	}
	return fault
}

// Allowed returns an error if the caller lacks a right for a request.
func (g *Guard) Allowed(w Caller, request proto.Message) error {
	if !g.admits(w.Owner) {
		return fmt.Errorf("%w: %q has no token any more", errForbidden, text.Clip(w.Owner, wire.MaxShown))
	}
	granted := g.Rights.Load()
	if granted == nil {
		return nil
	}
	of, known := access.Needs[wire.FullName(request)]
	if !known {
		return fmt.Errorf("%w: nothing allows a %s", errForbidden, request.ProtoReflect().Descriptor().Name())
	}
	for _, n := range of(request) {
		if !n.IsGranted(granted, w.Owner) {
			return fmt.Errorf("%w: %q may not %s", errForbidden, text.Clip(w.Owner, wire.MaxShown), n)
		}
	}
	return nil
}

// admits reports whether a principal has a token. Without tokens, certificates or nothing
// admit callers, which does not change.
func (g *Guard) admits(principal string) bool {
	with := *g.principals.Load()
	return len(with) == 0 || with[principal]
}

// may reports whether a principal has a right, and is still admitted at all.
func (g *Guard) may(principal string, do rights.Action, kind rights.Kind, name string) bool {
	if !g.admits(principal) {
		return false
	}
	granted := g.Rights.Load()
	if granted == nil {
		return true
	}
	_, ok := granted.Allow(principal, do, kind, name)
	return ok
}

// Sees reports whether a principal may see a name in listings.
func (g *Guard) Sees(principal string, kind rights.Kind, name string) bool {
	return g.may(principal, rights.ActionRead, kind, name)
}

// MayHandle reports whether a principal may have leases of a topic or queue, or turns at a gate.
func (g *Guard) MayHandle(principal string, kind rights.Kind, name string) bool {
	return g.may(principal, rights.ActionHandle, kind, name)
}

// Visible filters a response of the gateway that lists names. It keeps what the
// principal may read. Parts of joins are refused instead: their reader counts them.
func (g *Guard) Visible(principal string, answer any) any {
	if g.Rights.Load() == nil {
		return answer
	}
	if parts, ok := answer.(*messages.ListPartsResponse); ok {
		return g.visibleParts(principal, parts)
	}
	page, ok := answer.(*messages.ListRecurringResponse)
	if !ok {
		return answer
	}
	// The gateway has left out the rest already, see Narrow, unless the rights have changed since.
	seen := &messages.ListRecurringResponse{Request: page.GetRequest(), Next: page.GetNext()}
	for _, s := range page.GetSchedules() {
		if g.Sees(principal, rights.KindSchedule, s.GetName()) {
			seen.Schedules = append(seen.Schedules, s)
		}
	}
	return seen
}

// Narrow returns what is sent to the gateway for a request: a listing leaves out what its
// caller may not read before it is divided into pages, because the cursor of a page names the
// last one on it.
func (g *Guard) Narrow(w Caller, request proto.Message) any {
	m, ok := request.(*messages.ListRecurringRequest)
	if !ok || g.Rights.Load() == nil {
		return request
	}
	return gateway.VisibleRecurring{ListRecurringRequest: m, Sees: func(name string) bool {
		return g.Sees(w.Owner, rights.KindSchedule, name)
	}}
}

// visibleParts returns a page of parts, or an Error if the principal may not read the topic of
// one of them.
func (g *Guard) visibleParts(principal string, page *messages.ListPartsResponse) any {
	seen := map[string]bool{}
	for _, p := range page.GetParts() {
		name := p.GetPart().GetTopic()
		if seen[name] {
			continue
		}
		if seen[name] = g.Sees(principal, rights.KindTopic, name); !seen[name] {
			fault := convert.ErrorMessage(fmt.Errorf("%w: %q may not read the topic of a part", errForbidden, text.Clip(principal, wire.MaxShown)))
			fault.Request = page.GetRequest()
			return fault
		}
	}
	return page
}

// visibleAt is Visible for the peer at an address.
func (g *Guard) visibleAt(address string, answer any) any {
	switch answer.(type) {
	case *messages.ListRecurringResponse, *messages.ListPartsResponse:
	default:
		return answer
	}
	p, ok := g.Peers.At(address)
	if !ok {
		return answer // it is not delivered
	}
	return g.Visible(p.owner, answer)
}

// Deny answers a request that was not permitted, or logs it if the sender expects no
// response.
func (g *Guard) Deny(ctx context.Context, w Caller, request proto.Message, fault *messages.Error, answer func(proto.Message)) {
	if answer != nil && wire.IsAnswered[wire.FullName(request)] {
		answer(fault)
		return
	}
	g.Note(ctx, w, errors.New(fault.GetMessage()))
}

// deny answers a message to a local actor that was not permitted. The actor of the reminders
// answers its requests itself, as far as it runs: an Ack that follows waits for them.
func (in *inbound) deny(target *actor.PID, message proto.Message, fault *messages.Error, sender *actor.PID) {
	system := in.guard.system
	if asked, ok := message.(reminders.Request); ok && ofReminders[wire.FullName(message)] {
		if _, runs := system.ProcessRegistry.GetLocal(target.GetId()); runs {
			refused := reminders.Refused{Request: asked, Fault: fault}
			system.Root.Send(target, &actor.MessageEnvelope{Header: in.caller.Header(), Message: refused, Sender: sender})
			return
		}
	}
	in.guard.Deny(in.ctx, in.caller, message, fault, in.answerTo(sender))
}

var ofReminders = wire.SetOf(wire.Reminding)

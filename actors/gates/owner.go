package gates

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

const (
	maxGateName = 512 // bytes
	// The bounds of a turn's ttl.
	minTurnTTL, maxTurnTTL = time.Second, 24 * time.Hour
)

// errWaitTimeout ends the wait of an actor with a timeout.
var errWaitTimeout = errors.New("timed out waiting for the turn")

// turnOwner is an actor that has or wants turns. It is watched while it does.
type turnOwner struct {
	pid       *actor.PID
	principal string        // empty: of this process
	holder    *remoteHolder // its places are charged to it; nil: of this process
	at        map[turnPlace]*waiter
	detached  bool   // it is unreachable
	done      func() // ends the watch
}

// turnPlace distinguishes the places of an owner.
type turnPlace struct {
	gate   string
	number uint64
}

// requestTurn queues an actor's request.
func (k *gatekeeper) requestTurn(c actor.Context, m *messages.AcquireTurnRequest) {
	sender := c.Sender()
	place := turnPlace{m.GetGate(), m.GetPlace()}
	from := remoteHolderOf(c)
	refuse := func(code messages.Code, why string) {
		c.Respond(&messages.TurnRefused{Gate: m.GetGate(), Reason: why, Code: code, Request: m.GetRequest(), Place: m.GetPlace()})
	}
	switch ttl := m.GetTtl().AsDuration(); {
	case sender == nil:
		if skipped, ok := k.cfg.logLimit.Allow("sender " + principal.Of(c)); ok {
			k.cfg.Logger.Warn("turn requested without a sender", "gate", m.GetGate(), "skipped", skipped)
		}
		return
	case strings.HasPrefix(sender.GetId(), "future"):
		refuse(messages.Code_CODE_INVALID, "a future cannot own a turn; send the request from an actor")
		return
	case m.GetGate() == "" || len(m.GetGate()) > maxGateName:
		refuse(messages.Code_CODE_INVALID, fmt.Sprintf("gate: %d bytes, want 1 to %d", len(m.GetGate()), maxGateName))
		return
	case m.GetTtl() != nil && (ttl < minTurnTTL || ttl > maxTurnTTL):
		refuse(messages.Code_CODE_INVALID, fmt.Sprintf("ttl: %v, want %v to %v", ttl, minTurnTTL, maxTurnTTL))
		return
	}
	if o := k.ownerOf(sender, principal.Of(c)); o != nil && o.at[place] != nil {
		k.owner(c, from) // it is watched again if its link broke
		if w := o.at[place]; w.ttl > 0 && m.GetTtl() != nil {
			k.repeatRequest(w, m.GetRequest())
		} else {
			refuse(messages.Code_CODE_INVALID, "the actor already has or waits for the turn")
		}
		return
	}
	if k.refuseWithoutRight(from, m, refuse) {
		return
	}
	if full := k.remotePlaces.full(from); full != "" {
		refuse(messages.Code_CODE_OVERLOADED, full)
		return
	}
	o := k.owner(c, from)
	w := &waiter{
		gate: m.GetGate(), place: m.GetPlace(), request: m.GetRequest(), ttl: m.GetTtl().AsDuration(), try: m.GetTry(),
		asked: time.Now(), values: k.incarnation.ctx, owner: o,
	}
	k.own(o, w)
	if m.GetTimeout() != nil {
		incarnation := k.incarnation
		w.expiry = time.AfterFunc(m.GetTimeout().AsDuration(), func() { incarnation.send(waitExpired{incarnation, w}) })
	}
	k.acquire(w)
}

// repeatRequest has a request answered under a new number: the earlier answer may
// have been lost.
func (k *gatekeeper) repeatRequest(w *waiter, request uint64) {
	w.request = request
	if w.turn != nil && w.turn.state == turnHeld {
		k.sendTurn(w)
	}
}

// remoteHolderOf is what the places of a message's sender are charged to; nil: an
// actor of this process.
func remoteHolderOf(c actor.Context) *remoteHolder {
	of := principal.PartyOf(c)
	if of == (principal.Party{}) || c.Sender() == nil {
		return nil
	}
	return &remoteHolder{of, c.Sender().GetAddress()}
}

// owner returns the sender of a message as an owner, and watches it.
func (k *gatekeeper) owner(c actor.Context, holder *remoteHolder) *turnOwner {
	sender := c.Sender()
	o := k.ownerOf(sender, principal.Of(c))
	if o == nil {
		o = &turnOwner{pid: sender, principal: principal.Of(c), holder: holder, at: map[turnPlace]*waiter{}, detached: true}
		k.owners[sender.String()] = append(k.owners[sender.String()], o)
	}
	if o.detached {
		o.detached, o.done = false, func() { c.Unwatch(sender) }
		c.Watch(sender)
	}
	return o
}

// ownerOf returns the owner that an actor is for a principal, or nil. An address can pass to another
// principal, which has not the places of the first one.
func (k *gatekeeper) ownerOf(pid *actor.PID, principal string) *turnOwner {
	for _, o := range k.owners[pid.String()] {
		if o.principal == principal {
			return o
		}
	}
	return nil
}

// dropOwner forgets an owner without places. Its actor is watched while it is the owner of others.
func (k *gatekeeper) dropOwner(o *turnOwner) {
	left := slices.DeleteFunc(k.owners[o.pid.String()], func(other *turnOwner) bool { return other == o })
	if !slices.ContainsFunc(left, func(other *turnOwner) bool { return !other.detached }) {
		o.done()
	}
	if len(left) > 0 {
		k.owners[o.pid.String()] = left
	} else {
		delete(k.owners, o.pid.String())
	}
}

func (k *gatekeeper) own(o *turnOwner, w *waiter) {
	w.owner, o.at[turnPlace{w.gate, w.place}] = o, w
	k.remotePlaces.add(o.holder, 1)
}

// waitExpired ends the wait of an actor.
type waitExpired struct {
	incarnation *incarnation
	waiter      *waiter
}

func (k *gatekeeper) timeout(m waitExpired) {
	if m.incarnation != k.incarnation || m.waiter.answered {
		return
	}
	k.refuse(m.waiter, fmt.Errorf("%w within %v", errWaitTimeout, time.Since(m.waiter.asked).Round(time.Millisecond)))
	k.leave(m.waiter)
}

// findOwned returns the place that a message refers to. A turn with a ttl moves
// to a sender with the same credentials that names its token: its link was
// re-established, unless the message is ByToken.
func (k *gatekeeper) findOwned(c actor.Context, name string, place, fence uint64) *waiter {
	sender := c.Sender()
	if sender == nil {
		return nil
	}
	at := turnPlace{name, place}
	if o := k.ownerOf(sender, principal.Of(c)); o != nil && o.at[at] != nil {
		return k.owner(c, o.holder).at[at] // it is watched again if its link broke
	}
	q := k.queues[name]
	if q == nil || q.turn == nil || q.turn.Fence != fence || q.turn.owner == nil {
		return nil
	}
	w := q.turn.owner
	if w.ttl == 0 || w.place != place || w.owner.principal != principal.Of(c) {
		return nil
	}
	if _, stays := c.Message().(ByToken); !stays {
		k.forgetWaiter(w)
		k.own(k.owner(c, remoteHolderOf(c)), w)
	}
	return w
}

// releaseOwned releases an actor's turn, or its place.
func (k *gatekeeper) releaseOwned(c actor.Context, m *messages.ReleaseTurnRequest) {
	sender := c.Sender()
	answer := func(fence uint64, err error) {
		reply := &messages.ReleaseTurnResponse{Gate: m.GetGate(), Fence: fence, Request: m.GetRequest()}
		if err != nil {
			reply.Reason = err.Error()
		}
		if sender != nil {
			k.root.Send(sender, reply)
		}
	}
	w := k.findOwned(c, m.GetGate(), m.GetPlace(), m.GetFence())
	switch {
	case w == nil, w.turn == nil && m.GetFence() != 0, w.turn != nil && m.GetFence() != 0 && m.GetFence() != w.turn.Fence:
		answer(m.GetFence(), ErrTurnLost)
	case w.turn == nil:
		w.answered = true
		k.leave(w)
		answer(0, nil)
	default:
		fence := w.turn.Fence
		k.release(releaseTurn{w.turn, func(err error) { answer(fence, err) }})
	}
}

// ownerGone releases what an actor had that has ended. Turns with a ttl of an
// unreachable actor continue until the ttl ends: the actor may be at work. A session or a
// request of HTTP that ended before it was watched does not say why: its link may have broken.
func (k *gatekeeper) ownerGone(m *actor.Terminated) {
	unreachable := m.GetWhy() == actor.TerminatedReason_AddressTerminated ||
		m.GetWhy() == actor.TerminatedReason_NotFound && m.GetWho().GetAddress() == k.self.GetAddress()
	for _, o := range slices.Clone(k.owners[m.GetWho().String()]) {
		if o.detached {
			continue
		}
		o.detached, o.done = true, func() {}
		for _, w := range o.at {
			if unreachable && w.turn != nil && w.ttl > 0 {
				continue
			}
			k.withdraw(w)
		}
		if len(o.at) == 0 {
			k.dropOwner(o)
		}
	}
}

func (k *gatekeeper) grantOwner(w *waiter) {
	if w.ttl > 0 {
		k.startLapse(w)
	}
	k.sendTurn(w)
}

func (k *gatekeeper) sendTurn(w *waiter) {
	t := w.turn
	k.root.Send(w.owner.pid, &messages.Turn{
		Gate: t.Gate, Fence: t.Fence, Waited: durationpb.New(t.Waited), Request: w.request, Place: w.place,
	})
}

func (k *gatekeeper) refuseOwner(w *waiter, err error) {
	k.root.Send(w.owner.pid, &messages.TurnRefused{
		Gate: w.gate, Reason: err.Error(), Code: refusal(err), Request: w.request, Place: w.place,
	})
	k.forgetWaiter(w)
}

func refusal(err error) messages.Code {
	switch {
	case errors.Is(err, ErrHeld):
		return messages.Code_CODE_GATE_HELD
	case errors.Is(err, ErrClosed):
		return messages.Code_CODE_GATES_CLOSED
	case errors.Is(err, ErrTurnLost):
		return messages.Code_CODE_TURN_LOST
	case errors.Is(err, errWaitTimeout):
		return messages.Code_CODE_DEADLINE
	case errors.Is(err, exchange.ErrUnavailable):
		return messages.Code_CODE_UNAVAILABLE
	case errors.Is(err, exchange.ErrForbidden):
		return messages.Code_CODE_FORBIDDEN
	}
	return messages.Code_CODE_INTERNAL
}

// turnEnded removes an actor's turn, and notifies the actor if it was lost.
func (k *gatekeeper) turnEnded(t *Turn, lost bool) {
	if t.owner == nil {
		return
	}
	if lost {
		k.root.Send(t.owner.owner.pid, &messages.TurnLost{Gate: t.Gate, Fence: t.Fence, Place: t.owner.place})
	}
	k.forgetWaiter(t.owner)
}

func (k *gatekeeper) forgetWaiter(w *waiter) {
	for _, timer := range []*time.Timer{w.expiry, w.lapse} {
		if timer != nil {
			timer.Stop()
		}
	}
	o, at := w.owner, turnPlace{w.gate, w.place}
	if o == nil || o.at[at] != w {
		return
	}
	delete(o.at, at)
	k.remotePlaces.add(o.holder, -1)
	if len(o.at) == 0 {
		k.dropOwner(o)
	}
}

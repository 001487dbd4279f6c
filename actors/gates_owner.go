package actors

import (
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
)

// turnOwner is an actor that has or wants turns. It is watched while it does.
type turnOwner struct {
	pid  *actor.PID
	at   map[string]*waiter // by gate
	done func()             // ends the watch
}

// ask queues an actor's request.
func (k *gatekeeper) ask(c actor.Context, m *messages.AcquireTurn) {
	sender := c.Sender()
	refuse := func(why string) { c.Respond(&messages.TurnRefused{Gate: m.GetGate(), Reason: why}) }
	switch {
	case sender == nil:
		k.cfg.Logger.Warn("a turn was asked for without a sender", "gate", m.GetGate())
		return
	case strings.HasPrefix(sender.GetId(), "future"):
		refuse("a future cannot own a turn: ask from an actor, with Request")
		return
	case m.GetGate() == "":
		refuse("gate: empty")
		return
	}
	o := k.owners[sender.String()]
	if o == nil {
		o = &turnOwner{pid: sender, at: map[string]*waiter{}, done: func() { c.Unwatch(sender) }}
		k.owners[sender.String()] = o
		c.Watch(sender)
	}
	if o.at[m.GetGate()] != nil {
		refuse("the actor has or waits for the turn already")
		return
	}
	w := &waiter{gate: m.GetGate(), try: m.GetTry(), asked: time.Now(), values: k.life.ctx, owner: o}
	o.at[w.gate] = w
	if m.GetTimeout() != nil {
		life := k.life
		w.expiry = time.AfterFunc(m.GetTimeout().AsDuration(), func() { life.tell(waitedEnough{life, w}) })
	}
	k.acquire(w)
}

// waitedEnough ends the wait of an actor.
type waitedEnough struct {
	life   *gateLife
	waiter *waiter
}

func (k *gatekeeper) timeout(m waitedEnough) {
	if m.life != k.life || m.waiter.answered {
		return
	}
	k.refuse(m.waiter, fmt.Errorf("not its turn within %v", time.Since(m.waiter.asked).Round(time.Millisecond)))
	k.leave(m.waiter)
}

// giveBack takes an actor's turn, or its place, back.
func (k *gatekeeper) giveBack(c actor.Context, m *messages.ReleaseTurn) {
	sender := c.Sender()
	answer := func(fence uint64, err error) {
		reply := &messages.TurnReleased{Gate: m.GetGate(), Fence: fence}
		if err != nil {
			reply.Reason = err.Error()
		}
		if sender != nil {
			k.root.Send(sender, reply)
		}
	}
	var w *waiter
	if sender != nil && k.owners[sender.String()] != nil {
		w = k.owners[sender.String()].at[m.GetGate()]
	}
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

// ownerGone gives back what an actor had that has ended.
func (k *gatekeeper) ownerGone(who *actor.PID) {
	o := k.owners[who.String()]
	if o == nil {
		return
	}
	o.done = func() {}
	for _, w := range o.at {
		k.withdraw(w)
	}
	delete(k.owners, who.String())
}

func (k *gatekeeper) grantOwner(w *waiter) {
	t := w.turn
	k.root.Send(w.owner.pid, &messages.Turn{Gate: t.Gate, Fence: t.Fence, Waited: durationpb.New(t.Waited)})
}

func (k *gatekeeper) refuseOwner(w *waiter, err error) {
	k.root.Send(w.owner.pid, &messages.TurnRefused{Gate: w.gate, Reason: err.Error()})
	k.disownWaiter(w)
}

// disown forgets an actor's turn that is over, and says so if it was lost.
func (k *gatekeeper) disown(t *Turn, lost bool) {
	if t.owner == nil {
		return
	}
	if lost {
		k.root.Send(t.owner.owner.pid, &messages.TurnLost{Gate: t.Gate, Fence: t.Fence})
	}
	k.disownWaiter(t.owner)
}

func (k *gatekeeper) disownWaiter(w *waiter) {
	if w.expiry != nil {
		w.expiry.Stop()
	}
	if o := w.owner; o != nil && o.at[w.gate] == w {
		delete(o.at, w.gate)
		if len(o.at) == 0 {
			o.done()
			delete(k.owners, o.pid.String())
		}
	}
}

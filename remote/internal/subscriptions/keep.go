package subscriptions

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
)

// kept is the message of a goroutine that has carried out a KeepRequest.
type kept struct {
	hub   *hub // which started it, before a crash perhaps
	lease *held
	size  int
}

var errKeeps = errors.New("the lease has another request to keep something")

// keep carries out a KeepRequest beside the mailbox, one of a lease at a time. Until then it
// counts as memory of the subscriber.
func (h *hub) keep(c actor.Context, m *messages.KeepRequest, owner string) {
	l := h.held[m.GetDelivery()]
	if l == nil || l.of == nil || l.of.key != (subscriberKey{owner: owner, name: m.GetSubscriber()}) || (m.GetId() != "" && m.GetId() != l.lease.GetId()) {
		c.Respond(poller.NotHeld(m))
		return
	}
	if fault := h.charge(l, m); fault != nil {
		fault.Request = m.GetRequest()
		c.Respond(fault)
		return
	}
	l.keeps = true
	done, root, self, to := kept{h, l, proto.Size(m)}, h.root, h.self, c.Sender()
	go func() { // it ends with the lease
		defer h.guard.Running.Done()
		answer := l.lease.Keep(m)
		root.Send(self, done)
		if to != nil {
			root.Send(to, answer)
		}
	}()
}

// charge takes what a KeepRequest needs, or returns why it cannot be carried out now.
func (h *hub) charge(l *held, m *messages.KeepRequest) *messages.Error {
	if l.keeps {
		return peer.Overloaded(errKeeps)
	}
	if err := l.of.memory.Take(proto.Size(m)); err != nil {
		return peer.Overloaded(err)
	}
	if !h.guard.Enter() {
		l.of.memory.Give(proto.Size(m))
		return messages.Failure(messages.Code_CODE_DRAINING, "the node is stopping")
	}
	return nil
}

func (h *hub) kept(m kept) {
	if m.hub == h { // the memory of another one is cleared
		m.lease.keeps = false
		m.lease.of.memory.Give(m.size)
	}
}

package server

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// inbox is the sender of the messages of one request of HTTP. For local actors it is a
// process without a mailbox, as a session is.
type inbox struct {
	server *Server
	caller peer.Caller
	self   *actor.PID

	mu       sync.Mutex
	came     []any
	watchers map[string]*actor.PID
	over     actor.TerminatedReason // once ended
	ended    bool

	wake chan struct{} // has room for one
}

func (s *Server) newInbox(caller peer.Caller) *inbox {
	system := s.system.ActorSystem()
	i := &inbox{server: s, caller: caller, watchers: map[string]*actor.PID{}, wake: make(chan struct{}, 1)}
	i.self, _ = system.ProcessRegistry.Add(i, "wakebell-request"+system.ProcessRegistry.NextId())
	return i
}

// send sends a message with the header of the caller. It returns an error if the actor
// does not exist, as before the System's Start and after its Stop.
func (i *inbox) send(to *actor.PID, message any) error {
	system := i.server.system.ActorSystem()
	if _, there := system.ProcessRegistry.GetLocal(to.GetId()); !there {
		return wire.StatusOf(messages.Failure(messages.Code_CODE_DRAINING, "the system has not started, or is stopped"))
	}
	system.Root.Send(to, &actor.MessageEnvelope{Header: i.caller.Header(), Message: message, Sender: i.self})
	return nil
}

// receive returns the next message, or false at the end of ctx or after late.
func (i *inbox) receive(ctx context.Context, late <-chan time.Time) (any, bool) {
	for {
		if m, ok := i.next(); ok {
			return m, true
		}
		select {
		case <-i.wake:
		case <-ctx.Done():
			return nil, false
		case <-late:
			return nil, false
		}
	}
}

func (i *inbox) next() (any, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.came) == 0 {
		return nil, false
	}
	m := i.came[0]
	i.came = i.came[1:]
	return m, true
}

// SendUserMessage implements actor.Process.
func (i *inbox) SendUserMessage(_ *actor.PID, message any) {
	body := actor.UnwrapEnvelopeMessage(message)
	if m, ok := body.(proto.Message); ok {
		body = i.server.guard.Discreet(m)
	}
	i.mu.Lock()
	i.came = append(i.came, body)
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// SendSystemMessage implements actor.Process.
func (i *inbox) SendSystemMessage(_ *actor.PID, message any) {
	i.mu.Lock()
	ended := i.ended
	switch m := message.(type) {
	case *actor.Watch:
		if !ended {
			i.watchers[m.GetWatcher().GetId()] = m.GetWatcher()
		}
	case *actor.Unwatch:
		delete(i.watchers, m.GetWatcher().GetId())
	}
	i.mu.Unlock()
	if m, ok := message.(*actor.Watch); ok && ended {
		i.notifyEnd(m.GetWatcher())
	}
}

// Stop implements actor.Process. The inbox ends with its request.
func (i *inbox) Stop(*actor.PID) {}

// end notifies the watchers. After AddressTerminated they keep what the caller has.
func (i *inbox) end(why actor.TerminatedReason) {
	i.mu.Lock()
	if i.ended {
		i.mu.Unlock()
		return
	}
	i.ended, i.over = true, why
	watchers := i.watchers
	i.watchers = nil
	i.mu.Unlock()
	i.server.system.ActorSystem().ProcessRegistry.Remove(i.self)
	for _, w := range watchers {
		i.notifyEnd(w)
	}
}

func (i *inbox) notifyEnd(watcher *actor.PID) {
	if ref, ok := i.server.system.ActorSystem().ProcessRegistry.GetLocal(watcher.GetId()); ok {
		ref.SendSystemMessage(watcher, &actor.Terminated{Who: i.self, Why: i.over})
	}
}

package remote

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

const (
	maxCommands = 1000
	// A frame of replies is closed when it has as many, or as many bytes.
	maxReplies    = 1000
	maxReplyBytes = 1 << 20
)

// session is a stream of commands and replies. Among our actors it is a process
// without a mailbox: answers and leases that are sent to it wait for the stream.
type session struct {
	server *Server
	stream grpc.ServerStream
	who    who
	self   *actor.PID
	debts  *peer // what it is owed
	turns  *turns

	mu       sync.Mutex
	out      []*messages.Reply
	watchers map[string]*actor.PID
	over     actor.TerminatedReason // once ended
	ended    bool

	wake chan struct{} // has room for one
}

// session serves one until its end.
func (s *Server) session(stream grpc.ServerStream) error {
	caller, _ := stream.Context().Value(whoKey{}).(who)
	system := s.system.ActorSystem()
	n := &session{
		server: s, stream: stream, who: caller, debts: newPeer("", caller.owner, ""), turns: newTurns(system),
		watchers: map[string]*actor.PID{}, wake: make(chan struct{}, 1),
	}
	defer n.turns.close()
	n.self, _ = system.ProcessRegistry.Add(n, "wakebell-session"+system.ProcessRegistry.NextId())
	ctx, cancel := context.WithCancel(stream.Context())
	var writing sync.WaitGroup
	writing.Go(func() { n.write(ctx) })

	err := n.read(ctx)
	cancel()
	writing.Wait()
	if err == nil { // the caller has ended in order
		n.end(actor.TerminatedReason_Stopped)
	} else { // it may be back
		n.end(actor.TerminatedReason_AddressTerminated)
	}
	return err
}

// end tells those who watch the session.
func (n *session) end(why actor.TerminatedReason) {
	n.server.system.ActorSystem().ProcessRegistry.Remove(n.self)
	n.mu.Lock()
	n.ended, n.over = true, why
	watchers := n.watchers
	n.watchers, n.out = nil, nil
	n.mu.Unlock()
	for _, w := range watchers {
		n.tellEnd(w)
	}
}

func (n *session) tellEnd(watcher *actor.PID) {
	if ref, ok := n.server.system.ActorSystem().ProcessRegistry.GetLocal(watcher.GetId()); ok {
		ref.SendSystemMessage(watcher, &actor.Terminated{Who: n.self, Why: n.over})
	}
}

// SendUserMessage implements actor.Process: it takes what is for the caller.
func (n *session) SendUserMessage(_ *actor.PID, message any) {
	body := actor.UnwrapEnvelopeMessage(message)
	if m, ok := body.(proto.Message); ok {
		body = n.server.guard.discreet(m)
	}
	reply := replyOf(body)
	if reply == nil {
		return
	}
	n.mu.Lock()
	if !n.ended {
		n.out = append(n.out, reply)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// SendSystemMessage implements actor.Process.
func (n *session) SendSystemMessage(_ *actor.PID, message any) {
	n.mu.Lock()
	ended := n.ended
	switch m := message.(type) {
	case *actor.Watch:
		if !ended {
			n.watchers[m.GetWatcher().GetId()] = m.GetWatcher()
		}
	case *actor.Unwatch:
		delete(n.watchers, m.GetWatcher().GetId())
	}
	n.mu.Unlock()
	if m, ok := message.(*actor.Watch); ok && ended {
		n.tellEnd(m.GetWatcher())
	}
}

// Stop implements actor.Process: it ends with its stream.
func (n *session) Stop(*actor.PID) {}

// write sends what has gathered.
func (n *session) write(ctx context.Context) {
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		runtime.Gosched() // what is about to be answered as well fills the frame
		for {
			frame, paid := n.take()
			if frame == nil {
				break
			}
			if n.stream.SendMsg(frame) != nil {
				return // read learns of it too
			}
			n.debts.paid(paid)
		}
	}
}

func (n *session) take() (*messages.Replies, debt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var paid debt
	count, size := 0, 0
	for count < len(n.out) && count < maxReplies && size < maxReplyBytes {
		m := inside(n.out[count])
		size += proto.Size(m)
		if kind := fullName(m); isAnswer[kind] {
			paid.answers++
			paid.weight += weightOf(kind)
		}
		count++
	}
	if count == 0 {
		return nil, paid
	}
	frame := &messages.Replies{Replies: n.out[:count:count]}
	if n.out = n.out[count:]; len(n.out) == 0 {
		n.out = nil
	}
	return frame, paid
}

// read has commands carried out, until the caller has no more: nil, or is gone.
func (n *session) read(ctx context.Context) error {
	for {
		frame := &messages.Commands{}
		if err := n.stream.RecvMsg(frame); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if len(frame.GetCommands()) > maxCommands {
			return status.Errorf(codes.InvalidArgument, "%d commands in a frame, at most %d", len(frame.GetCommands()), maxCommands)
		}
		targets := map[string]struct{}{}
		var owed debt
		for _, c := range frame.GetCommands() {
			m := commanded(c)
			if m == nil {
				return status.Error(codes.InvalidArgument, "an empty command, or a newer one")
			}
			kind := fullName(m)
			if isAnswered[kind] {
				owed.answers++
				owed.weight += weightOf(kind)
			}
			if to := n.pass(m, kind); to != nil {
				targets[to.GetId()] = struct{}{}
			}
		}
		if err := n.debts.owe(ctx, owed); err != nil {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
		if err := n.turns.take(ctx, targets); err != nil {
			return err
		}
	}
}

// pass gives a command to its actor. Before the System's Start, and after its
// Stop, there is none: nil.
func (n *session) pass(m proto.Message, kind string) *actor.PID {
	to := n.server.system.Gateway()
	switch {
	case forSubscriptions[kind]:
		to = n.server.router
	case forGates[kind]:
		to = n.server.gates
	}
	system := n.server.system.ActorSystem()
	if _, there := system.ProcessRegistry.GetLocal(to.GetId()); !there {
		if asked, ok := m.(question); ok {
			fault := messages.Failure(messages.Code_CODE_DRAINING, "the system has not started, or is stopped")
			fault.Request = asked.GetRequest()
			system.Root.Send(n.self, fault)
		}
		return nil
	}
	system.Root.Send(to, &actor.MessageEnvelope{Header: n.who.header(), Message: m, Sender: n.self})
	return to
}

var forSubscriptions, forGates = set(subscribing), set(turning)

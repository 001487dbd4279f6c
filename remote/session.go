package remote

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	gpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
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
	server *server
	stream grpc.ServerStream
	who    who
	self   *actor.PID
	debts  debts          // what it asks for
	leases *limits.Holder // what subscribers have not been sent yet
	turns  *turns

	mu       sync.Mutex
	out      []reply
	watchers map[string]*actor.PID
	over     actor.TerminatedReason // once ended
	ended    bool

	wake chan struct{} // has room for one
}

// reply waits for the stream.
type reply struct {
	*messages.Reply
	size   int
	answer int // what it takes of the debts; 0: it answers nothing
	lease  int // what it takes of the leases; 0: it is not for a subscriber
}

func newReply(message any) reply {
	r := reply{Reply: replyOf(message)}
	if r.Reply != nil {
		r.size = proto.Size(inside(r.Reply))
	}
	return r
}

// session serves one until its end.
func (s *server) session(stream grpc.ServerStream) error {
	caller, _ := stream.Context().Value(whoKey{}).(who)
	system := s.system.ActorSystem()
	n := &session{
		server: s, stream: stream, who: caller, debts: debts{of: s.guard.peers.answers.Holder(caller.party())},
		leases: s.guard.leases.Holder(caller.party()), turns: newTurns(system),
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
	n.debts.clear()
	n.leases.Clear()
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
	next := newReply(n.server.guard.visible(n.who.owner, body))
	if next.Reply == nil {
		return
	}
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		return
	}
	if !n.count(&next, fullName(inside(next.Reply))) {
		n.mu.Unlock()
		return
	}
	n.out = append(n.out, next)
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
			frame, paid, leases := n.take()
			if frame == nil {
				break
			}
			late := time.AfterFunc(owedFor, n.cut)
			err := n.stream.SendMsg(frame)
			late.Stop()
			if err != nil {
				return // read learns of it too
			}
			n.debts.paid(paid)
			n.leases.Give(leases)
		}
	}
}

// cut ends the connection of a caller that does not read: only that ends a
// SendMsg that waits for it.
func (n *session) cut() {
	n.server.guard.note(n.stream.Context(), n.who, errNotReading)
	if p, ok := gpeer.FromContext(n.stream.Context()); ok {
		n.server.guard.connections.cut(p.Addr)
	}
}

// take is the next frame, and what it takes of the debts and of the leases.
func (n *session) take() (frame *messages.Replies, paid, leases int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	count, size := 0, 0
	for count < len(n.out) && count < maxReplies && size < maxReplyBytes {
		size += n.out[count].size
		paid += n.out[count].answer
		leases += n.out[count].lease
		count++
	}
	if count == 0 {
		return nil, 0, 0
	}
	frame = &messages.Replies{Replies: make([]*messages.Reply, count)}
	for i := range frame.Replies {
		frame.Replies[i] = n.out[i].Reply
	}
	clear(n.out[:count])
	if n.out = n.out[count:]; len(n.out) == 0 {
		n.out = nil
	}
	return frame, paid, leases
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
		for _, c := range frame.GetCommands() {
			m := commanded(c)
			if m == nil {
				return status.Error(codes.InvalidArgument, "an empty command, or a newer one")
			}
			kind := fullName(m)
			if err := n.debts.ask(ctx, kind); err != nil {
				return status.Error(codes.ResourceExhausted, err.Error())
			}
			if to := n.pass(m, kind); to != nil {
				targets[to.GetId()] = struct{}{}
			}
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
	if fault := n.server.guard.permit(n.who, m); fault != nil {
		n.server.guard.deny(n.stream.Context(), n.who, m, fault, func(answer proto.Message) { system.Root.Send(n.self, answer) })
		return nil
	}
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

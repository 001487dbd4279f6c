package server

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
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	maxCommands = 1000
	// A frame of several replies has at most this many, and this many bytes or MaxMessage.
	maxReplies    = 1000
	maxReplyBytes = 1 << 20
)

// session is a stream of commands and replies. For local actors it is a process
// without a mailbox: responses and leases that are sent to it wait for the stream.
type session struct {
	server *Server
	stream grpc.ServerStream
	caller peer.Caller
	self   *actor.PID
	window peer.ResponseWindow // the responses that it waits for
	leases *limits.Holder      // unsent messages to subscribers
	turns  *peer.Turns

	mu       sync.Mutex
	out      []reply
	watchers map[string]*actor.PID
	over     actor.TerminatedReason // once ended
	ended    bool

	wake chan struct{} // has room for one
}

// reply is a message that waits for the stream.
type reply struct {
	*messages.Reply
	size   int
	answer int // bytes in the window; 0: it is no response
	lease  int // bytes of the leases; 0: it is not for a subscriber
}

func newReply(message any) reply {
	r := reply{Reply: wire.ReplyOf(message)}
	if r.Reply != nil {
		r.size = proto.Size(wire.Inside(r.Reply))
	}
	return r
}

// session serves a session until its end.
func (s *Server) session(stream grpc.ServerStream) error {
	defer s.guard.Cfg.Metrics.Session(stream.Context(), "stream")()
	caller := peer.CallerOf(stream.Context())
	system := s.system.ActorSystem()
	n := &session{
		server: s, stream: stream, caller: caller, window: peer.ResponseWindow{Of: s.guard.Peers.Answers.Holder(caller.Party())},
		leases: s.guard.Leases.Holder(caller.Party()), turns: peer.NewTurns(system, s.guard.Router),
		watchers: map[string]*actor.PID{}, wake: make(chan struct{}, 1),
	}
	defer n.turns.Close()
	n.self, _ = system.ProcessRegistry.Add(n, "wakebell-session"+system.ProcessRegistry.NextId())
	ctx, cancel := context.WithCancel(stream.Context())
	var writing sync.WaitGroup
	writing.Go(func() { n.write(ctx) })

	err := n.read(ctx)
	cancel()
	writing.Wait()
	if err == nil { // the caller closed the stream
		n.end(actor.TerminatedReason_Stopped)
	} else { // the caller may come back
		n.end(actor.TerminatedReason_AddressTerminated)
	}
	return err
}

// end notifies the watchers of the session.
func (n *session) end(why actor.TerminatedReason) {
	n.server.system.ActorSystem().ProcessRegistry.Remove(n.self)
	n.mu.Lock()
	n.ended, n.over = true, why
	watchers := n.watchers
	n.watchers, n.out = nil, nil
	n.mu.Unlock()
	n.window.Clear()
	n.leases.Clear()
	for _, w := range watchers {
		n.notifyEnd(w)
	}
}

func (n *session) notifyEnd(watcher *actor.PID) {
	if ref, ok := n.server.system.ActorSystem().ProcessRegistry.GetLocal(watcher.GetId()); ok {
		ref.SendSystemMessage(watcher, &actor.Terminated{Who: n.self, Why: n.over})
	}
}

// SendUserMessage implements actor.Process. It queues a message for the caller.
func (n *session) SendUserMessage(_ *actor.PID, message any) {
	body := actor.UnwrapEnvelopeMessage(message)
	if m, ok := body.(*messages.TurnRefused); ok && m.GetCode() == messages.Code_CODE_GATES_CLOSED {
		// Clients wait for a node that stops, or for the next one, as after pass.
		fault := messages.Failure(messages.Code_CODE_DRAINING, m.GetReason())
		fault.Request = m.GetRequest()
		body = fault
	}
	if m, ok := body.(proto.Message); ok {
		body = n.server.guard.Discreet(m)
	}
	next := newReply(n.server.guard.Visible(n.caller.Owner, body))
	if next.Reply == nil {
		return
	}
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		return
	}
	if !n.count(&next, wire.FullName(wire.Inside(next.Reply))) {
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
		n.notifyEnd(m.GetWatcher())
	}
}

// Stop implements actor.Process. The session ends with its stream.
func (n *session) Stop(*actor.PID) {}

// write sends the waiting replies.
func (n *session) write(ctx context.Context) {
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		runtime.Gosched() // responses that are nearly ready join the frame
		for {
			frame, answers, leases := n.Take()
			if frame == nil {
				break
			}
			late := time.AfterFunc(peer.ReadTimeout, n.Cut)
			err := n.stream.SendMsg(frame)
			late.Stop()
			if err != nil {
				return // read receives the error too
			}
			n.window.Free(answers)
			n.leases.Give(leases)
		}
	}
}

// Cut closes the connection of a caller that does not read: nothing else ends a
// blocked SendMsg.
func (n *session) Cut() {
	n.server.guard.Note(n.stream.Context(), n.caller, peer.ErrNotReading)
	if p, ok := gpeer.FromContext(n.stream.Context()); ok {
		n.server.guard.Connections.Cut(p.Addr)
	}
}

// Take returns the next frame, and the bytes of its responses and leases.
func (n *session) Take() (frame *messages.Replies, answers, leases int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	count, size, most := 0, 0, min(maxReplyBytes, n.server.guard.Cfg.MaxMessage-wire.FrameOverhead)
	for count < len(n.out) && count < maxReplies {
		if size += n.out[count].size + wire.EnvelopeOverhead; count > 0 && size > most {
			break
		}
		answers += n.out[count].answer
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
	return frame, answers, leases
}

// read carries out commands until the caller closes the stream, which returns nil,
// or the stream fails.
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
		for _, c := range frame.GetCommands() {
			m := wire.Commanded(c)
			if m == nil {
				return status.Error(codes.InvalidArgument, "an empty command, or a newer one")
			}
			kind := wire.FullName(m)
			if err := n.window.Ask(ctx, kind); err != nil {
				return status.Error(codes.ResourceExhausted, err.Error())
			}
			n.pass(m, kind)
		}
		if err := n.turns.Take(ctx); err != nil {
			return err
		}
	}
}

// pass sends a command to its actor, unless that does not exist, as before the System's Start
// and after its Stop.
func (n *session) pass(m proto.Message, kind string) {
	to := n.server.system.Gateway()
	switch {
	case forSubscriptions[kind]:
		to = n.server.router
	case forGates[kind]:
		to = n.server.gates
	}
	system := n.server.system.ActorSystem()
	if fault := n.server.guard.Permit(n.caller, m); fault != nil {
		n.server.guard.Deny(n.stream.Context(), n.caller, m, fault, func(answer proto.Message) { system.Root.Send(n.self, answer) })
		return
	}
	if _, there := system.ProcessRegistry.GetLocal(to.GetId()); !there {
		if asked, ok := m.(wire.Question); ok {
			fault := messages.Failure(messages.Code_CODE_DRAINING, "the system has not started, or is stopped")
			fault.Request = asked.GetRequest()
			system.Root.Send(n.self, fault)
		}
		return
	}
	system.Root.Send(to, &actor.MessageEnvelope{Header: n.caller.Header(), Message: n.server.guard.Narrow(n.caller, m), Sender: n.self})
	n.turns.Passed(to.GetId(), m)
}

var forSubscriptions, forGates = wire.SetOf(wire.Subscribing), wire.SetOf(wire.Turning)

package remote

import (
	"context"
	"errors"
	"io"
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

// session is a stream of commands and replies. An actor stands for it among
// ours: answers and leases are sent to it.
type session struct {
	server *Server
	stream grpc.ServerStream
	who    who
	self   *actor.PID
	debts  *peer // what it is owed

	mu   sync.Mutex
	out  []*messages.Reply
	wake chan struct{} // has room for one
}

// session serves one until its end.
func (s *Server) session(stream grpc.ServerStream) error {
	caller, _ := stream.Context().Value(whoKey{}).(who)
	n := &session{server: s, stream: stream, who: caller, debts: newPeer("", caller.owner, ""), wake: make(chan struct{}, 1)}
	root := s.system.ActorSystem().Root
	n.self = root.Spawn(actor.PropsFromFunc(n.receive))
	ctx, cancel := context.WithCancel(stream.Context())
	var writing sync.WaitGroup
	writing.Go(func() { n.write(ctx) })

	err := n.read(ctx)
	cancel()
	if err != nil { // else the caller has ended in order
		root.Send(s.router, linkBroken{n.self})
		if gates, ok := s.system.ActorSystem().ProcessRegistry.GetLocal(s.gates.GetId()); ok {
			gates.SendSystemMessage(s.gates, &actor.Terminated{Who: n.self, Why: actor.TerminatedReason_AddressTerminated})
		}
	}
	writing.Wait()
	root.Stop(n.self)
	return err
}

// receive takes what is for the caller.
func (n *session) receive(c actor.Context) {
	reply := replyOf(c.Message())
	if reply == nil {
		return
	}
	n.mu.Lock()
	n.out = append(n.out, reply)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// write sends what has gathered.
func (n *session) write(ctx context.Context) {
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
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
	var turns turns
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
		if err := turns.take(ctx, n.server.system.ActorSystem(), targets); err != nil {
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
			fault := messages.Failure(messages.Code_CODE_UNAVAILABLE, "the node is not there yet, or no more")
			fault.Request = asked.GetRequest()
			system.Root.Send(n.self, fault)
		}
		return nil
	}
	system.Root.Send(to, &actor.MessageEnvelope{Header: n.who.header(), Message: m, Sender: n.self})
	return to
}

var forSubscriptions, forGates = set(subscribing), set(turning)

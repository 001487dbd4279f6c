package peer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// receiver serves protoactor's remote.Remoting: streams on which peers send to local
// actors. Calls that list processes are refused on purpose, with Unimplemented: a
// peer must not learn which actors there are.
type receiver struct {
	premote.UnimplementedRemotingServer
	guard *Guard
}

// Receive handles a stream of a peer, from its handshake to its end.
func (r receiver) Receive(stream premote.Remoting_ReceiveServer) error {
	caller, ok := stream.Context().Value(callerKey{}).(Caller)
	if !ok {
		return status.Error(codes.Unauthenticated, "no credentials")
	}
	in := &inbound{stream: stream, ctx: stream.Context(), guard: r.guard, caller: caller, turns: NewTurns(r.guard.system, r.guard.Router)}
	defer in.turns.Close()
	defer in.leave()
	err := in.Serve()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, errHostile), errors.Is(err, ErrNotReading),
		status.Code(err) == codes.ResourceExhausted, status.Code(err) == codes.Internal: // the frame was refused
		r.guard.Note(in.ctx, caller, err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return err
}

// inbound is a stream on which a peer sends to local actors.
type inbound struct {
	stream premote.Remoting_ReceiveServer
	ctx    context.Context //nolint:containedctx // the stream's context
	guard  *Guard
	caller Caller

	peer  *peer // nil before the handshake
	turns *Turns

	measured func() // ends the count of the link; nil before the handshake
}

// Serve handles frames one after the other. It reads a frame only when local actors
// have handled the last but one, so that their mailboxes stay short, and passes a
// request on only when there is room for its response.
func (in *inbound) Serve() error {
	for {
		m, err := in.stream.Recv()
		if err != nil {
			return err
		}
		switch t := m.GetMessageType().(type) {
		case *premote.RemoteMessage_ConnectRequest:
			err = in.arrive(t.ConnectRequest)
		case *premote.RemoteMessage_MessageBatch:
			err = in.batch(t.MessageBatch)
		default:
			err = hostile("a frame that is neither a batch nor a hello")
		}
		if err != nil {
			return err
		}
	}
}

// arrive handles the handshake of a peer. The address must be its own.
func (in *inbound) arrive(hello *premote.ConnectRequest) error {
	address := hello.GetServerConnection().GetAddress()
	if in.peer != nil || hello.GetServerConnection() == nil {
		return hostile("a second hello, or one without an address")
	}
	host, port, err := wire.HostPort(address)
	if err != nil || port == 0 || len(address) > maxID {
		return hostile("the address %q", text.Clip(address, wire.MaxShown))
	}
	dial, err := in.caller.dialAddress(in.ctx, host, port)
	if in.guard.Filter.addresses[address] || err != nil {
		return hostile("the address %q, which is not where it connects from", text.Clip(address, wire.MaxShown))
	}
	p, err := in.guard.Peers.arrive(address, dial, in.caller)
	if err != nil {
		return fmt.Errorf("%w: the address %q: %w", errHostile, address, err)
	}
	in.peer = p
	in.measured = in.guard.Cfg.Metrics.Session(in.ctx, "link")
	return in.stream.Send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_ConnectResponse{
		ConnectResponse: &premote.ConnectResponse{MemberId: in.guard.system.ID},
	}})
}

// batch passes the permitted envelopes of a batch to local actors.
func (in *inbound) batch(batch *premote.MessageBatch) error {
	if in.peer == nil {
		return hostile("a batch before the hello")
	}
	got, err := in.guard.Filter.Admit(batch, in.peer)
	if err != nil {
		return err
	}
	if got.dropped != "" {
		in.guard.Note(in.ctx, in.caller, errors.New(got.dropped))
	}
	for _, e := range batch.GetEnvelopes() {
		if e.GetSender() > 0 {
			if err := in.peer.window.Ask(in.ctx, batch.GetTypeNames()[e.GetTypeId()]); err != nil {
				return err
			}
		}
		if err := in.pass(batch, e); err != nil {
			return err
		}
	}
	return in.turns.Take(in.ctx)
}

// pass sends an admitted message to its actor.
func (in *inbound) pass(batch *premote.MessageBatch, e *premote.MessageEnvelope) error {
	kind := batch.GetTypeNames()[e.GetTypeId()]
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(kind))
	if err != nil {
		return hostile("type %q: %v", text.Clip(kind, wire.MaxShown), err)
	}
	message := known.New().Interface()
	if err := proto.Unmarshal(e.GetMessageData(), message); err != nil {
		return hostile("a %q: %v", kind, err)
	}
	system := in.guard.system
	target := system.NewLocalPID(batch.GetTargets()[e.GetTarget()].GetId())
	switch m := message.(type) {
	case *actor.Terminated:
		in.peer.unwatch(m.GetWho().GetId(), target.GetId())
		in.tell(target, m)
	case *actor.Watch, *actor.Unwatch:
		in.tell(target, m)
	default:
		var sender *actor.PID
		if e.GetSender() > 0 {
			from := batch.GetSenders()[e.GetSender()-1]
			sender = actor.NewPID(from.GetAddress(), from.GetId())
			sender.RequestId = e.GetSenderRequestId()
		}
		if fault := in.Permit(message); fault != nil {
			in.deny(target, message, fault, sender)
			return nil
		}
		system.Root.Send(target, &actor.MessageEnvelope{Header: in.caller.Header(), Message: in.guard.Narrow(in.caller, message), Sender: sender})
		in.turns.Passed(target.GetId(), message)
	}
	return nil
}

// tell sends a system message to a local actor. If the actor does not exist, the
// dead letters answer a Watch.
func (in *inbound) tell(target *actor.PID, m proto.Message) {
	ref, _ := in.guard.system.ProcessRegistry.GetLocal(target.GetId())
	ref.SendSystemMessage(target, m)
}

// leave handles the end of the stream. The last stream of a peer ends its link and
// its watches.
func (in *inbound) leave() {
	if in.measured != nil {
		in.measured()
	}
	if in.peer == nil || !in.guard.Peers.leave(in.peer) {
		return
	}
	for key := range in.peer.unwatched() {
		target := in.guard.system.NewLocalPID(key[0])
		in.tell(target, &actor.Unwatch{Watcher: actor.NewPID(in.peer.address, key[1])})
	}
}

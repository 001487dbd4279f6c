package server

import (
	"context"
	"net"
	"net/http"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// AdmitHTTP authenticates a request of HTTP, and charges it to its caller until leave is
// called.
func (s *Server) AdmitHTTP(r *http.Request) (ctx context.Context, leave func(), err error) {
	return s.guard.AdmitHTTP(r)
}

// Room charges the bytes of a request until give is called.
func (s *Server) Room(ctx context.Context, bytes int) (give func(), err error) {
	return s.guard.Room(ctx, bytes)
}

// Answering reserves room for the answer of a request until done is called.
func (s *Server) Answering(ctx context.Context, request proto.Message) (more func(bytes int), done func(), err error) {
	return s.guard.Answering(ctx, request)
}

// MaxMessage is the largest request, in bytes.
func (s *Server) MaxMessage() int { return s.guard.Cfg.MaxMessage }

// ListenHTTP listens for HTTP at an address.
func (s *Server) ListenHTTP(address string) (net.Listener, error) { return s.guard.ListenHTTP(address) }

// NoteHTTP logs what the HTTP server reports.
func (s *Server) NoteHTTP(text string) { s.guard.NoteHTTP(text) }

// unaryMethods are the methods of the service Timers by the full names of their requests.
var unaryMethods = func() map[protoreflect.FullName]grpc.MethodDesc {
	byName := map[string]grpc.MethodDesc{}
	for _, m := range rpc.Timers_ServiceDesc.Methods {
		byName[m.MethodName] = m
	}
	all := map[protoreflect.FullName]grpc.MethodDesc{}
	methods := messages.File_messages_services_proto.Services().ByName("Timers").Methods()
	for i := range methods.Len() {
		if m, unary := byName[string(methods.Get(i).Name())]; unary {
			all[methods.Get(i).Input().FullName()] = m
		}
	}
	return all
}()

// Do carries out a request of HTTP: one of the service Timers by the service itself, one
// of package httpapi by the actors that serve the same of a Session.
func (s *Server) Do(ctx context.Context, request proto.Message) (proto.Message, error) {
	if m, ok := unaryMethods[proto.MessageName(request)]; ok {
		answer, err := m.Handler(&timers{server: s}, ctx, func(into any) error {
			to, ok := into.(proto.Message)
			if !ok {
				return wire.ErrNoMessage
			}
			share(to.ProtoReflect(), request.ProtoReflect())
			return nil
		}, s.guard.Intercept)
		return asMessage(answer, err)
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/http/" + string(request.ProtoReflect().Descriptor().Name())}
	answer, err := s.guard.Intercept(ctx, request, info, func(ctx context.Context, _ any) (any, error) {
		return s.doHTTP(ctx, request)
	})
	return asMessage(answer, err)
}

func asMessage(answer any, err error) (proto.Message, error) {
	if err != nil {
		return nil, err
	}
	m, ok := answer.(proto.Message)
	if !ok {
		return nil, wire.ErrNoMessage
	}
	return m, nil
}

// share sets the fields of a message to those of another one, without copying bodies.
func share(to, from protoreflect.Message) {
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
}

func (s *Server) doHTTP(ctx context.Context, request proto.Message) (proto.Message, error) {
	c := &httpCall{Server: s, caller: peer.CallerOf(ctx)}
	switch m := request.(type) {
	case *httpapi.ClaimRequest:
		return c.claim(ctx, m)
	case *httpapi.ReportRequest:
		return c.report(ctx, m)
	case *httpapi.AckRequest:
		return c.settle(ctx, m, &messages.Ack{Result: m.GetResult()})
	case *httpapi.NackRequest:
		return c.settle(ctx, m, &messages.Nack{Reason: m.GetReason(), Delay: m.GetDelay(), Snooze: m.GetSnooze()})
	case *httpapi.RejectRequest:
		return c.settle(ctx, m, &messages.Reject{Reason: m.GetReason()})
	case *httpapi.ReleaseRequest:
		return c.settle(ctx, m, &messages.Release{})
	case *httpapi.CheckpointRequest:
		return c.keep(ctx, m, &messages.KeepRequest{What: &messages.KeepRequest_Checkpoint{Checkpoint: &messages.Content{
			Body: m.GetBody(), ContentType: m.GetContentType(), Headers: m.GetHeaders(),
		}}})
	case *httpapi.ProgressRequest:
		return c.keep(ctx, m, &messages.KeepRequest{What: &messages.KeepRequest_Progress{Progress: &messages.Progress{
			Fraction: m.GetFraction(), Note: m.GetNote(),
		}}})
	case *httpapi.ExtendRequest:
		return c.extendLease(ctx, m)
	case *httpapi.AcquireRequest:
		return c.acquire(ctx, m)
	case *httpapi.ExtendTurnRequest:
		return c.extendTurn(ctx, m)
	case *httpapi.ReleaseTurnRequest:
		return c.releaseTurn(ctx, m)
	}
	return nil, wire.ErrNoMessage
}

// httpCall is a request of package httpapi.
type httpCall struct {
	*Server
	caller peer.Caller
}

// permit decides about the message of a Session that does the same.
func (c *httpCall) permit(request proto.Message) error {
	if fault := c.guard.Permit(c.caller, request); fault != nil {
		return wire.StatusOf(fault)
	}
	return nil
}

// wait permits a request that may wait, charges it to its caller, and gives it an inbox,
// until done is called.
func (c *httpCall) wait(request proto.Message) (in *inbox, done func(), err error) {
	if err := c.permit(request); err != nil {
		return nil, nil, err
	}
	of := c.caller.Party()
	if err := c.waits.Take(of, 1); err != nil {
		return nil, nil, wire.StatusOf(peer.Overloaded(err))
	}
	in = c.newInbox(c.caller)
	return in, func() {
		in.end(actor.TerminatedReason_Stopped)
		c.waits.Give(of, 1)
	}, nil
}

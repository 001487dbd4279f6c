package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	gpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

const (
	maxStreams     = 64 // of a connection
	maxHeaderBytes = 16 << 10
	handshake      = 10 * time.Second
	// turnTimeout is how long an actor of ours may take to come to what a peer
	// has sent; only one that crashes again and again takes so long.
	turnTimeout = 30 * time.Second
)

const receiveMethod = "/remote.Remoting/Receive"

// serverOptions are those of the server that protoactor starts.
func (g *guard) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(g.connections),
		grpc.ForceServerCodecV2(frames{}),
		grpc.MaxRecvMsgSize(g.cfg.MaxMessage),
		grpc.MaxSendMsgSize(g.cfg.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(g.unary),
		grpc.ChainStreamInterceptor(g.stream),
		grpc.UnknownServiceHandler(g.services.serve),
	}
}

// unary refuses all: protoactor's own unary calls panic, and ours come as
// streams of a service that its server does not know.
func (g *guard) unary(ctx context.Context, _ any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	if _, err := g.authenticate(ctx); err != nil {
		return nil, err
	}
	return nil, status.Errorf(codes.Unimplemented, "%s is not served", info.FullMethod)
}

// stream is what every call passes first.
func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	who, err := g.authenticate(ss.Context())
	if err != nil {
		g.refused(ss.Context(), err)
		return err
	}
	if !g.enter() {
		return status.Error(codes.Unavailable, "shutting down")
	}
	defer g.running.Done()
	defer func() {
		if reason := recover(); reason != nil {
			g.note(ss.Context(), who, fmt.Errorf("a call panicked: %v", reason), "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the call failed")
		}
	}()
	ctx, cancel := context.WithCancelCause(context.WithValue(ss.Context(), whoKey{}, who))
	defer cancel(nil)
	defer context.AfterFunc(g.closing, func() { cancel(errClosing) })()
	if info.FullMethod != receiveMethod {
		return handler(srv, &caller{ss, ctx})
	}
	in := &inbound{ServerStream: ss, ctx: ctx, guard: g, who: who}
	defer in.leave()
	err = handler(srv, in)
	if in.fault != nil {
		g.note(ss.Context(), who, in.fault)
		return status.Error(codes.PermissionDenied, in.fault.Error())
	}
	return err
}

var errClosing = errors.New("shutting down")

// who is a caller that has shown who it is.
type who struct {
	owner string // empty: no credentials are asked for
	token string
	host  string // where it connects from
	names func(host string) bool
}

type whoKey struct{}

// caller is a stream with who calls in its context.
type caller struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // that of the stream
}

func (c *caller) Context() context.Context { return c.ctx }

// authenticate tells who calls, or refuses.
func (g *guard) authenticate(ctx context.Context) (who, error) {
	w := who{names: func(string) bool { return false }}
	p, ok := gpeer.FromContext(ctx)
	if !ok {
		return w, status.Error(codes.Unauthenticated, "no peer")
	}
	w.host = hostOf(p.Addr)
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		leaf := info.State.PeerCertificates[0]
		w.owner = leaf.Subject.CommonName
		w.names = func(host string) bool { return leaf.VerifyHostname(host) == nil }
	}
	if len(g.owners) == 0 {
		return w, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) != 1 {
		return w, status.Error(codes.Unauthenticated, "a bearer token is asked for")
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	owner, known := g.owners[sha256.Sum256([]byte(token))]
	if !ok || !known {
		return w, status.Error(codes.Unauthenticated, "the token is not known")
	}
	w.owner, w.token = owner, token
	return w, nil
}

func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}

// inbound is a stream on which a peer sends to our actors.
type inbound struct {
	grpc.ServerStream
	ctx   context.Context //nolint:containedctx // that of the stream
	guard *guard
	who   who

	peer  *peer // nil until it has said where it is
	fault error // why the stream ended, if that is the peer's fault
	turns []*actor.Future
	came  map[string]struct{} // the actors that the last batch was for
}

func (in *inbound) Context() context.Context { return in.ctx }

// RecvMsg gives protoactor what may pass. It does not return before the actors
// have come to what passed two batches ago, so their mailboxes stay short, nor
// while the peer owes it to itself to read its answers.
func (in *inbound) RecvMsg(m any) error {
	message, ok := m.(*premote.RemoteMessage)
	if !ok {
		return in.blame(hostile("a %T", m))
	}
	if err := in.turn(); err != nil {
		return err
	}
	for {
		if err := in.ServerStream.RecvMsg(m); err != nil {
			if status.Code(err) == codes.ResourceExhausted || status.Code(err) == codes.Internal {
				in.fault = err
			}
			return err
		}
		switch t := message.GetMessageType().(type) {
		case *premote.RemoteMessage_ConnectRequest:
			return in.arrive(t.ConnectRequest)
		case *premote.RemoteMessage_MessageBatch:
			if pass, err := in.batch(t.MessageBatch); err != nil || pass {
				return err
			}
		default:
			return in.blame(hostile("a frame that is neither a batch nor a hello"))
		}
	}
}

func (in *inbound) blame(err error) error {
	in.fault = err
	return err
}

// arrive takes a peer's hello: the address must be its own.
func (in *inbound) arrive(hello *premote.ConnectRequest) error {
	address := hello.GetServerConnection().GetAddress()
	if in.peer != nil || hello.GetServerConnection() == nil {
		return in.blame(hostile("a second hello, or one without an address"))
	}
	host, port, err := hostPort(address)
	if err != nil || port == 0 || len(address) > maxID {
		return in.blame(hostile("the address %q", clip(address)))
	}
	if in.guard.filter.addresses[address] || !in.who.isAt(in.ctx, host) {
		return in.blame(hostile("the address %q, which is not where it connects from", clip(address)))
	}
	p, err := in.guard.peers.arrive(address, in.who.owner, in.who.token)
	if err != nil {
		return in.blame(fmt.Errorf("%w: the address %q: %w", errHostile, address, err))
	}
	in.peer = p
	return nil
}

// isAt reports whether a host is where the caller connects from.
func (w who) isAt(ctx context.Context, host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		from := net.ParseIP(w.host)
		return (from != nil && from.Equal(ip)) || w.names(host)
	}
	if w.names(host) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && slices.Contains(found, w.host)
}

// batch takes out of a batch what may not pass; pass: something is left.
func (in *inbound) batch(batch *premote.MessageBatch) (pass bool, err error) {
	if in.peer == nil {
		return false, in.blame(hostile("a batch before the hello"))
	}
	got, err := in.guard.filter.admit(batch, in.peer)
	if err != nil {
		return false, in.blame(err)
	}
	if got.dropped != "" {
		in.guard.note(in.ctx, in.who, errors.New(got.dropped))
	}
	if err := in.peer.owe(in.ctx, got.owed); err != nil {
		if errors.Is(err, errNotReading) {
			in.fault = err
		}
		return false, err
	}
	in.came = got.targets
	return len(batch.GetEnvelopes()) > 0, nil
}

// turn waits until our actors have come to the batch before the last, and asks
// them to say so of the last.
func (in *inbound) turn() error {
	waiting := in.turns
	in.turns = nil
	for id := range in.came {
		pid := in.guard.system.NewLocalPID(id)
		in.turns = append(in.turns, in.guard.system.Root.RequestFuture(pid, &actor.Touch{}, turnTimeout))
	}
	in.came = nil
	for _, f := range waiting {
		if _, err := f.Result(); err != nil && !errors.Is(err, actor.ErrDeadLetter) {
			return status.Errorf(codes.Unavailable, "an actor does not come to its messages: %v", err)
		}
	}
	return context.Cause(in.ctx)
}

// leave notes that the stream has ended. With the last of a peer its actors
// are gone for ours.
func (in *inbound) leave() {
	if in.peer == nil || !in.guard.peers.leave(in.peer) {
		return
	}
	g := in.guard
	for key := range in.peer.unwatched() {
		watcher := actor.NewPID(in.peer.address, key[1])
		if ref, ok := g.system.ProcessRegistry.GetLocal(key[0]); ok {
			ref.SendSystemMessage(g.system.NewLocalPID(key[0]), &actor.Unwatch{Watcher: watcher})
		}
	}
	g.system.EventStream.Publish(&premote.EndpointTerminatedEvent{Address: in.peer.address})
}

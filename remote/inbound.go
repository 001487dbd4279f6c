package remote

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	gpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

const (
	maxStreams     = 64 // of a connection
	maxHeaderBytes = 16 << 10
	handshake      = 10 * time.Second
)

// serverOptions are those of the server that protoactor starts.
func (g *guard) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(g.connections),
		grpc.InTapHandle(g.begin),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ForceServerCodecV2(frames{plain: maxPlain}),
		grpc.MaxRecvMsgSize(g.cfg.MaxMessage),
		grpc.MaxSendMsgSize(g.cfg.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(g.unary, carryOutOperation),
		grpc.ChainStreamInterceptor(g.stream),
	}
}

// unary is what every call passes that is no stream, once its request is there.
func (g *guard) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	if !g.enter() {
		return nil, errShutting
	}
	defer g.running.Done()
	who, _ := ctx.Value(whoKey{}).(who) // begin has let it in
	defer g.recovered(ctx, who, &err)
	visitOf(ctx).arrived()
	return handler(ctx, request)
}

var errShutting = status.Error(codes.Unavailable, "shutting down")

// recovered makes an error of a panic.
func (g *guard) recovered(ctx context.Context, w who, err *error) {
	if reason := recover(); reason != nil {
		g.note(ctx, w, fmt.Errorf("a call panicked: %v", reason), "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the call failed")
	}
}

// stream is what every stream passes.
func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	if !g.enter() {
		return errShutting
	}
	defer g.running.Done()
	who, _ := ss.Context().Value(whoKey{}).(who) // begin has let it in
	defer g.recovered(ss.Context(), who, &err)
	ctx, cancel := context.WithCancelCause(ss.Context())
	defer cancel(nil)
	defer context.AfterFunc(g.closing, func() { cancel(errClosing) })()
	return handler(srv, &caller{ss, ctx, visitOf(ctx)})
}

var errClosing = errors.New("shutting down")

// who is a caller that has shown who it is.
type who struct {
	owner  string // empty: no credentials are asked for
	token  string
	celery string // queues that are open to peers, as the header has them
	host   string // where it connects from
	names  func(host string) bool
}

// party is what is charged to the caller.
func (w who) party() limits.Party { return limits.Party{Principal: w.owner, Host: w.host} }

type whoKey struct{}

// authenticate tells who calls, or refuses.
func (g *guard) authenticate(ctx context.Context) (who, error) {
	w := who{names: func(string) bool { return false }, celery: messages.CeleryQueues(g.cfg.CeleryQueues)}
	p, ok := gpeer.FromContext(ctx)
	if !ok {
		return w, status.Error(codes.Unauthenticated, "no peer")
	}
	w.host = hostOf(p.Addr)
	var leaf *x509.Certificate
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		leaf = info.State.PeerCertificates[0]
		w.owner = leaf.Subject.CommonName
		w.names = func(host string) bool { return leaf.VerifyHostname(host) == nil }
	}
	known := *g.owners.Load()
	if len(known) == 0 {
		return w, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) != 1 {
		return w, status.Error(codes.Unauthenticated, "a bearer token is asked for")
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	hash := tokenHash(sha256.Sum256([]byte(token)))
	owner, ours := known[hash]
	if ours {
		g.connections.show(p.Addr, hash)
		_, ours = (*g.owners.Load())[hash] // it may have been taken back before it was noted
	}
	if !ok || !ours {
		return w, status.Error(codes.Unauthenticated, "the token is not known")
	}
	if !owner.takes(leaf) {
		return w, status.Error(codes.Unauthenticated, "the token is not valid with this certificate")
	}
	w.owner, w.token = owner.name, token
	return w, nil
}

func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}

package peer

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	gpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/conn"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	maxStreams     = 64 // per connection
	maxHeaderBytes = 16 << 10
	handshake      = 10 * time.Second
)

// frameBuffers are the buffers of arriving frames: a peer chooses the size of its
// frames. gRPC's own pool would give a frame up to four times its size, this one at
// most a third more.
var frameBuffers = mem.NewTieredBufferPool(1280, 1536, 2048, 2688, 3072, 4096, 5376, 6144, 8192, 10240, 12288, 16384, 32768)

// serverOptions returns the options of the gRPC server.
func (g *Guard) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(g.Connections),
		grpc.InTapHandle(g.begin),
		grpc.StaticStreamWindowSize(conn.StreamWindow),
		grpc.StaticConnWindowSize(conn.ConnWindow),
		grpc.ForceServerCodecV2(wire.Frames{Plain: maxPlain}),
		grpc.MaxRecvMsgSize(g.Cfg.MaxMessage),
		grpc.MaxSendMsgSize(g.Cfg.MaxMessage),
		experimental.BufferPool(frameBuffers),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: wire.PingAfter, Timeout: wire.PingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: wire.PingAfter / 2, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(g.unary, g.CarryOut),
		grpc.ChainStreamInterceptor(g.stream),
	}
}

// unary wraps every unary call, after its request has arrived.
func (g *Guard) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	if !g.Enter() {
		return nil, errShutting
	}
	defer g.Running.Done()
	caller := CallerOf(ctx) // begin has let it in
	defer func() { g.Cfg.Metrics.Requested(ctx, method(info.FullMethod), codeOf(err)) }()
	defer g.recovered(ctx, caller, &err)
	callOf(ctx).arrived()
	return handler(ctx, request)
}

var errShutting = status.Error(codes.Unavailable, "shutting down")

// recovered converts a panic to an error.
func (g *Guard) recovered(ctx context.Context, w Caller, err *error) {
	if reason := recover(); reason != nil {
		g.Note(ctx, w, fmt.Errorf("a call panicked: %v", reason), "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the call failed")
	}
}

// stream wraps every stream.
func (g *Guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	if !g.Enter() {
		return errShutting
	}
	defer g.Running.Done()
	caller := CallerOf(ss.Context()) // begin has let it in
	defer func() { g.Cfg.Metrics.Requested(ss.Context(), method(info.FullMethod), codeOf(err)) }()
	defer g.recovered(ss.Context(), caller, &err)
	ctx, cancel := context.WithCancelCause(ss.Context())
	defer cancel(nil)
	defer context.AfterFunc(g.Closing, func() { cancel(errClosing) })()
	return handler(srv, &countedStream{ss, ctx, callOf(ctx)})
}

// method returns the name of a method without that of its service.
func method(full string) string { return full[strings.LastIndexByte(full, '/')+1:] }

// codeOf returns the status code of a call in the spelling of the metrics.
func codeOf(err error) string {
	name := status.Code(err).String() // as PermissionDenied
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

var errClosing = errors.New("shutting down")

// authenticate returns the caller of a connection, or an error.
func (g *Guard) authenticate(ctx context.Context, all *conn.Connections) (Caller, error) {
	w := Caller{names: func(string) bool { return false }, celery: messages.CeleryQueues(g.Cfg.CeleryQueues)}
	p, ok := gpeer.FromContext(ctx)
	if !ok {
		return w, status.Error(codes.Unauthenticated, "no peer")
	}
	w.host = conn.HostOf(p.Addr)
	var leaf *x509.Certificate
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		leaf = info.State.PeerCertificates[0]
		w.Owner, w.credential = leaf.Subject.CommonName, string(wakebelltype.AuditViaCertificate)
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
	hash := access.TokenHash(sha256.Sum256([]byte(token)))
	owner, ours := known[hash]
	if ours {
		all.Show(p.Addr, hash)
		now, known := (*g.owners.Load())[hash] // SetTokens may have run before Show
		ours = known && now == owner
	}
	if !ok || !ours {
		return w, status.Error(codes.Unauthenticated, "the token is not known")
	}
	if !owner.Takes(leaf) {
		return w, status.Error(codes.Unauthenticated, "the token is not valid with this certificate")
	}
	w.Owner, w.credential, w.token = owner.Name, string(wakebelltype.AuditViaToken), token
	return w, nil
}

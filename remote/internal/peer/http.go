package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	gpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/remote/internal/conn"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// HTTP has no second set of decisions: its requests get the context of a gRPC call, and
// pass the same authentication, budgets and interceptors.

var (
	errOpen    = errors.New("a request for this host name, or from a web page, needs credentials that this node does not ask for")
	errNoProof = status.Error(codes.Unauthenticated, "a client certificate is asked for")
)

// AdmitHTTP authenticates a request of HTTP as begin does a call of gRPC, and charges it
// to its caller until leave is called. The context ends with the request or the Guard.
func (g *Guard) AdmitHTTP(r *http.Request) (ctx context.Context, leave func(), err error) {
	from := &gpeer.Peer{Addr: addressOf(r.RemoteAddr)}
	md := metadata.MD{"authorization": r.Header.Values("Authorization")}
	proven := r.TLS != nil && len(r.TLS.VerifiedChains) > 0
	if proven {
		from.AuthInfo = credentials.TLSInfo{State: *r.TLS}
	}
	ctx = gpeer.NewContext(metadata.NewIncomingContext(r.Context(), md), from)
	w, err := g.authenticate(ctx, g.Web)
	if err == nil && g.Cfg.asksForCertificates() && !proven {
		err = errNoProof
	}
	if err == nil && !g.sameOrigin(w, r) {
		err = status.Error(codes.PermissionDenied, errOpen.Error())
	}
	if err != nil {
		g.refused(ctx, err)
		return nil, nil, err
	}
	err = g.Web.Admit(from.Addr, w.Owner)
	if err == nil {
		err = g.streams.Take(w.Party(), 1)
	}
	if err != nil {
		g.Note(ctx, w, err)
		return nil, nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, callerKey{}, w))
	stop := context.AfterFunc(g.Closing, func() { cancel(errClosing) })
	return ctx, func() {
		stop()
		cancel(nil)
		g.streams.Give(w.Party(), 1)
	}, nil
}

// sameOrigin reports whether a request without credentials is for an address of this
// machine. A page in a browser can send requests to loopback, also under a name of its
// own that resolves to it.
func (g *Guard) sameOrigin(w Caller, r *http.Request) bool {
	if w.Owner != "" || g.Cfg.Insecure {
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// addressOf is the address of a connection of HTTP.
func addressOf(remote string) net.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return &net.UnixAddr{Name: remote, Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(at)
}

// Room charges the bytes of a request to its caller until give is called. It waits for
// room as the messages of gRPC do.
func (g *Guard) Room(ctx context.Context, bytes int) (give func(), err error) {
	if bytes <= conn.StreamWindow {
		return func() {}, nil
	}
	of := CallerOf(ctx).Party()
	if err := g.bodies.Await(of, bytes, conn.BodyWithin, ctx.Done()); err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	return func() { g.bodies.Give(of, bytes) }, nil
}

// answersOfHTTP is the bound of answers, without shares: each request is a holder of its
// own, so that shares would let a principal exceed its bound by every request.
func answersOfHTTP() limits.Bound {
	b := limits.Answers
	b.Share, b.Holder = 0, 0
	return b
}

// Answering reserves room for the answer of a request, as a session does, until done is
// called. It waits for room. more charges an answer that is larger.
func (g *Guard) Answering(ctx context.Context, request proto.Message) (more func(bytes int), done func(), err error) {
	of, reserved := CallerOf(ctx).Party(), lightAnswer
	if wire.Heavy[wire.FullName(request)] {
		reserved = 2 * firstHeavy // JSON can take several times the bytes of a message
	}
	if err := g.webAnswers.Await(of, reserved, conn.BodyWithin, ctx.Done()); err != nil {
		return nil, nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	rest := g.webAnswers.Holder(of)
	more = func(bytes int) { rest.Force(max(bytes-reserved, 0)) }
	return more, func() {
		rest.Clear()
		g.webAnswers.Give(of, reserved)
	}, nil
}

// Intercept carries out a request of HTTP behind the interceptors of gRPC.
func (g *Guard) Intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
	return g.unary(ctx, request, info, func(ctx context.Context, request any) (any, error) {
		return g.CarryOut(ctx, request, info, do)
	})
}

// NoteHTTP logs what the HTTP server reports about connections.
func (g *Guard) NoteHTTP(text string) { g.logRefusal("", "", errors.New(text)) }

// ListenHTTP listens for HTTP. Its connections are bounded like those of gRPC.
func (g *Guard) ListenHTTP(address string) (net.Listener, error) {
	l, err := g.Cfg.listen(address)
	if err != nil {
		return nil, err
	}
	tracked := &webListener{Listener: l, guard: g}
	if g.Cfg.TLS == nil {
		return tracked, nil
	}
	return tls.NewListener(tracked, onlyHTTP1(g.Cfg.TLS)), nil
}

// onlyHTTP1 returns a configuration that offers HTTP/1.1: a connection has one request
// at a time, so that the bounds of connections are those of requests.
func onlyHTTP1(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.NextProtos = []string{"http/1.1"}
	if each := cfg.GetConfigForClient; each != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			own, err := each(hello)
			if own == nil || err != nil {
				return own, err
			}
			own = own.Clone()
			own.NextProtos = []string{"http/1.1"}
			return own, nil
		}
	}
	return cfg
}

// webListener tracks its connections.
type webListener struct {
	net.Listener
	guard *Guard
}

// Accept implements net.Listener.
func (l *webListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if tracked := l.guard.Web.Track(raw); tracked != nil {
			tracked.Moved = func(received, sent int) { l.guard.Cfg.Metrics.Bytes(l.guard.Closing, received, sent) }
			return tracked, nil
		}
		_ = raw.Close() // the Guard is closed
	}
}

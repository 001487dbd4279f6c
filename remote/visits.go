package remote

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	gpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages/rpc"
)

// maxPlain bounds a request of a service that is not ours, as of gRPC's health.
const maxPlain = 64 << 10

// visit is a stream, from its headers to its end.
type visit struct {
	guard  *guard
	who    who
	intake *intake
	late   *time.Timer // ends it while its request has not arrived; nil: it may wait

	mu    sync.Mutex
	held  int // bytes of the message that is carried out
	ended bool
}

type visitKey struct{}

// begin is what every stream passes before anything but its headers is read: so
// nothing is kept for a caller without credentials. It must not block.
func (g *guard) begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	w, err := g.authenticate(ctx)
	if err != nil {
		g.refused(ctx, err)
		return nil, err
	}
	from, _ := gpeer.FromContext(ctx)
	err = g.connections.admit(from.Addr, w.owner)
	if err == nil {
		err = g.streams.Take(w.party(), 1)
	}
	if err != nil {
		g.note(ctx, w, err)
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	c := &visit{guard: g, who: w}
	if conn := g.connections.at(from.Addr); conn != nil {
		c.intake = conn.intake.Load()
	}
	ctx = context.WithValue(context.WithValue(ctx, whoKey{}, w), visitKey{}, c)
	if !mayWait[info.FullMethodName] {
		late, cancel := context.WithCancel(ctx)
		ctx, c.late = late, time.AfterFunc(bodyWithin, cancel)
	}
	context.AfterFunc(ctx, c.end)
	return ctx, nil
}

// mayWait are the calls whose caller may say something at any time.
var mayWait = map[string]bool{
	rpc.Timers_Session_FullMethodName:                           true,
	"/remote.Remoting/Receive":                                  true,
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": true,
}

func visitOf(ctx context.Context) *visit {
	c, _ := ctx.Value(visitKey{}).(*visit)
	return c
}

// arrived notes that the request is there.
func (c *visit) arrived() {
	if c != nil && c.late != nil {
		c.late.Stop()
	}
}

// take has the call hold what is counted for a message of this size, and gives
// back what it held for the one before.
func (c *visit) take(size int) {
	if c == nil || c.intake == nil {
		return
	}
	c.hold(c.intake.taken(size))
}

func (c *visit) hold(n int) {
	c.mu.Lock()
	before := c.held
	if c.held = n; c.ended {
		before, c.held = n+before, 0
	}
	c.mu.Unlock()
	if before > 0 {
		c.guard.bodies.Give(c.intake.party(), before)
	}
}

func (c *visit) end() {
	c.arrived()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.hold(0)
	c.guard.streams.Give(c.who.party(), 1)
}

// received is where a message of a call goes.
type received struct {
	proto.Message
	call *visit
}

// arrived implements counted.
func (r *received) arrived(bytes int) proto.Message {
	r.call.take(bytes)
	return r.Message
}

// intakeOf counts the messages of a connection.
func (g *guard) intakeOf(conn net.Conn, of *connection) net.Conn {
	in := &intake{
		Conn: conn, of: of, budget: g.bodies, limit: uint32(g.cfg.MaxMessage), //nolint:gosec // at most 1 GiB
		refused: func(host string, err error) { g.complain(host, "", err) },
		streams: map[uint32]*incoming{},
	}
	in.in.skip = prefaceBytes
	of.intake.Store(in)
	return in
}

// caller is a stream with who calls in its context.
type caller struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // that of the stream
	call *visit
}

func (c *caller) Context() context.Context { return c.ctx }

// RecvMsg implements grpc.ServerStream. What the message before held is given
// back: it has been carried out.
func (c *caller) RecvMsg(m any) error {
	into, ok := m.(proto.Message)
	if !ok || c.call == nil {
		return c.ServerStream.RecvMsg(m)
	}
	c.call.hold(0)
	err := c.ServerStream.RecvMsg(&received{into, c.call})
	c.call.arrived()
	return err
}

package peer

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
	"github.com/wakebell/wakebell/remote/internal/conn"
)

// maxPlain bounds, in bytes, the requests of services other than Wakebell's, such as
// gRPC's health service.
const maxPlain = 64 << 10

// call is a stream, from its headers to its end.
type call struct {
	guard  *Guard
	caller Caller
	intake *conn.Intake
	late   *time.Timer // cancels the call if its request does not arrive; nil: no limit

	mu    sync.Mutex
	held  int // bytes counted for the message that is carried out
	ended bool
}

type callKey struct{}

// begin authenticates every stream before anything but its headers is read, so that
// a caller without credentials takes no memory. It must not block.
func (g *Guard) begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	w, err := g.authenticate(ctx, g.Connections)
	if err != nil {
		g.refused(ctx, err)
		return nil, err
	}
	from, _ := gpeer.FromContext(ctx)
	err = g.Connections.Admit(from.Addr, w.Owner)
	if err == nil {
		err = g.streams.Take(w.Party(), 1)
	}
	if err != nil {
		g.Note(ctx, w, err)
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	c := &call{guard: g, caller: w}
	if at := g.Connections.At(from.Addr); at != nil {
		c.intake = at.Counting()
	}
	ctx = context.WithValue(context.WithValue(ctx, callerKey{}, w), callKey{}, c)
	if !mayWait[info.FullMethodName] {
		late, cancel := context.WithCancel(ctx)
		ctx, c.late = late, time.AfterFunc(conn.BodyWithin, cancel)
	}
	context.AfterFunc(ctx, c.end)
	return ctx, nil
}

// mayWait are the calls without a deadline for their first message.
var mayWait = map[string]bool{
	rpc.Timers_Session_FullMethodName:                           true,
	"/remote.Remoting/Receive":                                  true,
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": true,
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// arrived stops the deadline of the request.
func (c *call) arrived() {
	if c != nil && c.late != nil {
		c.late.Stop()
	}
}

// Take transfers the bytes counted for a message of this size to the call, and
// returns those of the previous message.
func (c *call) Take(size int) {
	if c == nil || c.intake == nil {
		return
	}
	c.hold(c.intake.Taken(size))
}

func (c *call) hold(n int) {
	c.mu.Lock()
	before := c.held
	if c.held = n; c.ended {
		before, c.held = n+before, 0
	}
	c.mu.Unlock()
	if before > 0 {
		c.guard.bodies.Give(c.intake.Party(), before)
	}
}

func (c *call) end() {
	c.arrived()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.hold(0)
	c.guard.streams.Give(c.caller.Party(), 1)
}

// Counted wraps a request so that its bytes are counted when it is decoded.
func Counted(ctx context.Context, request proto.Message) any {
	return &received{request, callOf(ctx)}
}

// received implements wire.Counted for the message of a call.
type received struct {
	proto.Message
	call *call
}

// Arrived implements wire.Counted.
func (r *received) Arrived(bytes int) proto.Message {
	r.call.Take(bytes)
	return r.Message
}

// intakeOf wraps a connection so that its messages are counted.
func (g *Guard) intakeOf(raw net.Conn, of *conn.Connection) net.Conn {
	in := conn.NewIntake(raw, of, g.bodies, g.Cfg.MaxMessage, func(host string, err error) { g.logRefusal(host, "", err) })
	in.Moved = func(received, sent int) { g.Cfg.Metrics.Bytes(g.Closing, received, sent) }
	return in
}

// countedStream is a stream with counted messages and a context that ends with the
// Guard.
type countedStream struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // that of the stream
	call *call
}

func (c *countedStream) Context() context.Context { return c.ctx }

// RecvMsg implements grpc.ServerStream. It returns the bytes of the previous
// message, which has been carried out.
func (c *countedStream) RecvMsg(m any) error {
	into, ok := m.(proto.Message)
	if !ok || c.call == nil {
		return c.ServerStream.RecvMsg(m)
	}
	c.call.hold(0)
	err := c.ServerStream.RecvMsg(&received{into, c.call})
	c.call.arrived()
	return err
}

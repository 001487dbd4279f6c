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

// maxPlain bounds a request of a service that is not ours, as of gRPC's health.
const maxPlain = 64 << 10

// call is a stream, from its headers to its end.
type call struct {
	guard  *Guard
	caller Caller
	intake *conn.Intake
	late   *time.Timer // ends it while its request has not arrived; nil: it may wait

	mu    sync.Mutex
	held  int // bytes of the message that is carried out
	ended bool
}

type callKey struct{}

// begin is what every stream passes before anything but its headers is read: so
// nothing is kept for a caller without credentials. It must not block.
func (g *Guard) begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	w, err := g.authenticate(ctx)
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

// mayWait are the calls whose caller may say something at any time.
var mayWait = map[string]bool{
	rpc.Timers_Session_FullMethodName:                           true,
	"/remote.Remoting/Receive":                                  true,
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": true,
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// arrived notes that the request is there.
func (c *call) arrived() {
	if c != nil && c.late != nil {
		c.late.Stop()
	}
}

// Take has the call hold what is counted for a message of this size, and gives
// back what it held for the one before.
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

// Counted is where the request of a call goes whose bytes are counted.
func Counted(ctx context.Context, request proto.Message) any {
	return &received{request, callOf(ctx)}
}

// received is where a message of a call goes.
type received struct {
	proto.Message
	call *call
}

// Arrived implements wire.Counted.
func (r *received) Arrived(bytes int) proto.Message {
	r.call.Take(bytes)
	return r.Message
}

// intakeOf counts the messages of a connection.
func (g *Guard) intakeOf(raw net.Conn, of *conn.Connection) net.Conn {
	return conn.NewIntake(raw, of, g.bodies, g.Cfg.MaxMessage, func(host string, err error) { g.logRefusal(host, "", err) })
}

// caller is a stream with who calls in its context.
type countedStream struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // that of the stream
	call *call
}

func (c *countedStream) Context() context.Context { return c.ctx }

// RecvMsg implements grpc.ServerStream. What the message before held is given
// back: it has been carried out.
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

package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// raw speaks HTTP/2 by hand: what no library of gRPC would say.
type raw struct {
	net.Conn
	*http2.Framer
	out     *bytes.Buffer
	head    *hpack.Encoder
	stream  uint32
	heading bytes.Buffer
}

// knock connects and says the preface. Frames are buffered until flush.
func (b *besieged) knock() *raw {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.server.Address())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	r := &raw{Conn: conn, out: &bytes.Buffer{}}
	r.Framer = http2.NewFramer(r.out, nil)
	r.head = hpack.NewEncoder(&r.heading)
	r.out.WriteString(http2.ClientPreface)
	require.NoError(b.t, r.WriteSettings())
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return r
}

// flush sends what was written. It gives up where the node reads no more.
func (r *raw) flush() {
	_ = r.Conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = r.Conn.Write(r.out.Bytes())
	r.out.Reset()
}

// call begins a call; a token that is empty is not shown.
func (r *raw) call(method, token string) uint32 {
	if r.stream == 0 {
		r.stream = 1
	} else {
		r.stream += 2
	}
	r.heading.Reset()
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: method},
		{Name: ":authority", Value: "x"}, {Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	}
	if token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
	}
	for _, f := range fields {
		_ = r.head.WriteField(f)
	}
	_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream, BlockFragment: r.heading.Bytes(), EndHeaders: true})
	return r.stream
}

// body begins a message of a length, and sends so much of it.
func (r *raw) body(stream uint32, length, sent int) {
	prefix := make([]byte, 5)
	binary.BigEndian.PutUint32(prefix[1:], uint32(length))
	_ = r.WriteData(stream, false, prefix)
	r.zeros(stream, sent)
}

func (r *raw) zeros(stream uint32, n int) {
	part := make([]byte, 16<<10)
	for left := n; left > 0; left -= len(part) {
		_ = r.WriteData(stream, false, part[:min(left, len(part))])
		if r.out.Len() > 1<<20 {
			r.flush()
		}
	}
}

const scheduleMethod, sessionMethod = "/wakebell.v1.Timers/Schedule", "/wakebell.v1.Timers/Session"

// Bodies without their last byte, without a token and with one: of calls, and of
// sessions, which may stay open.
func TestBodiesThatDoNotEnd(t *testing.T) { //nolint:paralleltest // it measures memory
	for name, attack := range map[string]struct{ method, token string }{
		"of calls without a token":    {scheduleMethod, ""},
		"of calls":                    {scheduleMethod, mallory},
		"of sessions":                 {sessionMethod, mallory},
		"of sessions without a token": {sessionMethod, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t)
			crowd(4, func(int) {
				r := b.knock()
				for range 32 {
					r.body(r.call(attack.method, attack.token), 8<<20, 8<<20-1)
				}
				r.flush()
			})
			b.honest()
			b.bounded()
		})
	}
}

// Bodies that are complete, again and again. Each is one field of 7 MiB that the
// message does not have.
func TestCompleteBodiesInALoop(t *testing.T) { //nolint:paralleltest // it measures memory
	const size = 7 << 20
	field := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.BytesType), size)
	for name, token := range map[string]string{"without a token": "", "with one": mallory} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t)
			crowd(8, func(int) {
				r := b.knock()
				for range 16 {
					stream := r.call(scheduleMethod, token)
					r.body(stream, len(field)+size, 0)
					_ = r.WriteData(stream, false, field)
					r.zeros(stream, size)
					_ = r.WriteData(stream, true, nil)
					r.flush()
				}
			})
			b.honest()
			b.bounded()
		})
	}
}

// A body that does not arrive ends its call, and one that is large its link.
func TestABodyHasADeadline(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	conn := b.dial(t)
	began := time.Now()
	stream, err := conn.NewStream(bearing(t.Context(), mallory), &grpc.StreamDesc{ClientStreams: true}, scheduleMethod)
	require.NoError(t, err)
	require.Error(t, stream.RecvMsg(&messages.Scheduled{}))
	require.GreaterOrEqual(t, time.Since(began), 9*time.Second)
}

// Connections that say nothing, more than a node serves at once.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := besiege(t)
	var silent []net.Conn
	for range 600 {
		conn, err := net.Dial("tcp", b.server.Address())
		require.NoError(t, err)
		silent = append(silent, conn)
	}
	for range 5 {
		b.honest()
	}
	b.bounded()
	for _, conn := range silent {
		_ = conn.Close()
	}
	b.over()
}

// Connections that speak HTTP/2 and make calls that are refused, or none.
func TestConnectionsWithoutCredentialsKeepNobodyOut(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := besiege(t)
	var made []*raw
	for i := range 300 {
		r := b.knock()
		if i%2 == 0 {
			r.call(scheduleMethod, "a-token-that-nobody-has")
		}
		r.flush()
		made = append(made, r)
	}
	b.honest()
	b.bounded()
	for _, r := range made {
		_ = r.Conn.Close()
	}
	b.over()
}

// One principal has a share of the connections.
func TestAPrincipalHasAShareOfTheConnections(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := besiege(t, func(cfg *remote.Config) { cfg.MaxConnections = 8 })
	var conns []*grpc.ClientConn
	served := 0
	for range 8 {
		conn := b.dial(t)
		err := conn.Invoke(bearing(t.Context(), mallory), "/wakebell.v1.Timers/Stats", &messages.Stats{Topic: b.topic.Name()}, &messages.TopicStats{})
		if err == nil {
			served++
		} else {
			require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
			require.ErrorContains(t, err, "too many connections of this principal")
		}
		conns = append(conns, conn)
	}
	require.Equal(t, 4, served)
	b.honest()
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	eventually(t, func() bool {
		conn := b.dial(t)
		defer func() { _ = conn.Close() }()
		return conn.Invoke(bearing(t.Context(), mallory), "/wakebell.v1.Timers/Stats", &messages.Stats{Topic: b.topic.Name()}, &messages.TopicStats{}) == nil
	})
	b.over()
}

// A connection that makes no call with credentials is closed.
func TestAConnectionHasToMakeACall(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	conn, err := net.Dial("tcp", b.server.Address())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, http2.NewFramer(conn, nil).WriteSettings())
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, conn)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	if nerr, ok := err.(net.Error); ok {
		require.False(t, nerr.Timeout(), "it was left open")
	}
}

package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
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
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote"
)

// raw speaks HTTP/2 by hand, to send what no gRPC library sends. It respects the
// node's flow control; otherwise the node would end its streams.
type raw struct {
	net.Conn
	head    *hpack.Encoder
	heading bytes.Buffer
	stream  uint32
	frame   int // maximum bytes of a frame

	writing sync.Mutex
	framer  *http2.Framer

	mu      sync.Mutex
	windows map[uint32]int
	more    chan struct{} // has room for one
}

// knock connects and sends the preface.
func knock(t testing.TB, n *node) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", n.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	r := &raw{Conn: conn, frame: 16 << 10, framer: http2.NewFramer(conn, conn), windows: map[uint32]int{0: 65535}, more: make(chan struct{}, 1)}
	r.head = hpack.NewEncoder(&r.heading)
	// The node may have closed it already, to make room for others.
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = r.framer.WriteSettings()
	go r.listen()
	return r
}

// listen reads the window updates of the node.
func (r *raw) listen() {
	for {
		f, err := r.framer.ReadFrame()
		if err != nil {
			return
		}
		if w, ok := f.(*http2.WindowUpdateFrame); ok {
			r.mu.Lock()
			r.windows[w.StreamID] += int(w.Increment)
			r.mu.Unlock()
			select {
			case r.more <- struct{}{}:
			default:
			}
		}
	}
}

// call begins a call. An empty token is not sent.
func (r *raw) call(method, token string) uint32 {
	if r.stream == 0 {
		r.stream = 1
	} else {
		r.stream += 2
	}
	r.mu.Lock()
	r.windows[r.stream] = 65535
	r.mu.Unlock()
	r.heading.Reset()
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}
	if token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
	}
	for _, f := range fields {
		_ = r.head.WriteField(f)
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	_ = r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream, BlockFragment: r.heading.Bytes(), EndHeaders: true})
	return r.stream
}

// send sends as much of data as the node takes without a pause.
func (r *raw) send(stream uint32, data []byte, end bool) bool {
	const patient = 300 * time.Millisecond
	late := time.NewTimer(patient)
	defer late.Stop()
	for len(data) > 0 {
		r.mu.Lock()
		n := min(len(data), r.windows[0], r.windows[stream], r.frame)
		r.windows[0] -= max(n, 0)
		r.windows[stream] -= max(n, 0)
		r.mu.Unlock()
		if n > 0 {
			r.writing.Lock()
			_ = r.SetWriteDeadline(time.Now().Add(time.Second))
			err := r.framer.WriteData(stream, end && n == len(data), data[:n])
			r.writing.Unlock()
			if err != nil {
				return false
			}
			data = data[n:]
			late.Reset(patient)
			continue
		}
		select {
		case <-r.more:
		case <-late.C:
			return false
		}
	}
	return true
}

// zeros returns a gRPC message with one unknown field of size zeros.
func zeros(size int) []byte {
	field := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.BytesType), uint64(size))
	m := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(field)+size))
	return append(append(m, field...), make([]byte, size)...)
}

const scheduleMethod, sessionMethod = rpc.Timers_Schedule_FullMethodName, rpc.Timers_Session_FullMethodName

// Bodies of calls and sessions without their last byte, with a token and without.
func TestBodiesThatDoNotEnd(t *testing.T) { //nolint:paralleltest // it measures memory
	unfinished := zeros(7 << 20)
	unfinished = unfinished[:len(unfinished)-1]
	for name, attack := range map[string]struct{ method, token string }{
		"of calls without a token":    {scheduleMethod, ""},
		"of calls":                    {scheduleMethod, mallory},
		"of sessions":                 {sessionMethod, mallory},
		"of sessions without a token": {sessionMethod, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t)
			inParallel(4, func(int) {
				r := knock(t, b.node)
				for range 24 {
					r.send(r.call(attack.method, attack.token), unfinished, false)
				}
			})
			b.honest()
			b.bounded()
		})
	}
}

// Bodies that are complete, again and again. Each is one field of 7 MiB that the
// message does not have.
func TestCompleteBodiesInLoop(t *testing.T) { //nolint:paralleltest // it measures memory
	whole := zeros(7 << 20)
	for name, token := range map[string]string{"without a token": "", "with one": mallory} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t)
			inParallel(8, func(int) {
				r := knock(t, b.node)
				for range 16 {
					r.send(r.call(scheduleMethod, token), whole, true)
				}
			})
			b.honest()
			b.bounded()
		})
	}
}

// gRPC takes more memory for a frame than for the few bytes in it.
func TestMessageInSmallFramesEndsItsConnection(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	whole := zeros(1 << 20)
	for _, method := range []string{scheduleMethod, sessionMethod} {
		r := knock(t, b.node)
		r.frame = 1
		require.False(t, r.send(r.call(method, mallory), whole, true), "the node reads all of it")
		r = knock(t, b.node)
		r.frame = 1 << 10
		require.True(t, r.send(r.call(method, mallory), whole, true), "frames of the size of a packet")
	}
	eventually(t, func() bool { return len(b.log.with("a message in too many small frames")) > 0 })
	b.honest()
}

// A body that does not arrive ends its call; a large one ends its connection.
func TestBodyHasDeadline(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	conn := b.dial(t)
	began := time.Now()
	stream, err := conn.NewStream(bearing(t.Context(), mallory), &grpc.StreamDesc{ClientStreams: true}, scheduleMethod)
	require.NoError(t, err)
	require.Error(t, stream.RecvMsg(&messages.ScheduleResponse{}))
	require.GreaterOrEqual(t, time.Since(began), 9*time.Second)
}

// Connections that send nothing, more than a node serves at once.
func TestSilentConnectionsDoNotLockClientsOut(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := besiege(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		inParallel(400, func(int) {
			for ctx.Err() == nil { // each reconnects when it was closed
				conn, err := net.Dial("tcp", b.server.Address())
				if err == nil {
					end := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = io.Copy(io.Discard, conn)
					end()
					_ = conn.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
				}
			}
		})
	}()
	for range 5 {
		b.honest()
	}
	b.bounded()
	stop()
	<-done
	b.over()
}

// Connections that speak HTTP/2 and make calls that are refused, or none.
func TestConnectionsWithoutCredentialsDoNotLockClientsOut(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := besiege(t)
	var made []*raw
	for i := range 300 {
		r := knock(t, b.node)
		if i%2 == 0 {
			r.call(scheduleMethod, "an-unknown-token")
		}
		made = append(made, r)
	}
	b.honest()
	b.bounded()
	for _, r := range made {
		_ = r.Close()
	}
	b.over()
}

// One principal has a share of the connections.
func TestPrincipalHasShareOfConnections(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := besiege(t, func(cfg *remote.Config) { cfg.MaxConnections = 8 })
	var conns []*grpc.ClientConn
	served := 0
	for range 8 {
		conn := b.dial(t)
		err := conn.Invoke(bearing(t.Context(), mallory), rpc.Timers_GetTopicStats_FullMethodName, &messages.GetTopicStatsRequest{Topic: b.topic.Name()}, &messages.GetTopicStatsResponse{})
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
		return conn.Invoke(bearing(t.Context(), mallory), rpc.Timers_GetTopicStats_FullMethodName, &messages.GetTopicStatsRequest{Topic: b.topic.Name()}, &messages.GetTopicStatsResponse{}) == nil
	})
	b.over()
}

// A connection that makes no call with credentials is closed.
func TestConnectionHasToMakeCall(t *testing.T) {
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
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection was left open")
}

package remote_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

func TestMain(m *testing.M) {
	redistest.Waiting(6) // for deadlines of connections
	redistest.Main(m)
}

// patience bounds the waits for other goroutines and processes.
const patience = 2 * time.Minute

const secret = "a-secret-of-sixteen-bytes"

var quiet = slog.New(slog.DiscardHandler)

func eventually(t testing.TB, condition func() bool, about ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, about...)
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func actorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) with(part string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// node is a served System. If another process serves it, it has no server and no
// log, and its System is not started: it is a client of the same Redis.
type node struct {
	*wakebell.System
	server  *remote.Server
	log     *lines
	conn    connection.Config // of its Connection, which logs nothing unless it has a Logger
	address string
	gateway string // the id of its gateway
	topic   wakebell.Topic[string]
}

// serve runs and serves a System until the end of the test.
func serve(t testing.TB, cfg remote.Config, handlers ...wakebell.Handler) *node {
	t.Helper()
	n := &node{log: &lines{}, topic: wakebell.NewTopic[string](redistest.Name(t))}
	n.conn.Logger = slog.New(slog.NewTextHandler(n.log, nil))
	return n.start(t, cfg, wakebell.Config{Handlers: handlers})
}

// start runs the System of a node, and serves it.
func (n *node) start(t testing.TB, cfg remote.Config, of wakebell.Config) *node {
	t.Helper()
	of.DrainTimeout = -1
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), n.conn), of)
	require.NoError(t, err)
	n.System = sys
	n.server, err = remote.Serve(sys, cfg)
	require.NoError(t, err)
	n.address, n.gateway = n.server.Address(), sys.Gateway().GetId()
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() {
		_ = sys.Stop()
		n.server.Stop()
	})
	return n
}

// settled waits until no timer is left, so that no verdict is in flight: a drain
// waits only briefly for verdicts.
func (n *node) settled(t testing.TB) {
	t.Helper()
	eventually(t, func() bool {
		st, err := n.Client().Stats(t.Context(), n.topic.Name())
		return err == nil && st.Total == 0
	})
}

func withToken() remote.Config {
	return remote.Config{Tokens: map[string]string{secret: "tests"}}
}

// stranger speaks protoactor's protocol by hand, so that it can send what no real
// peer sends.
type stranger struct {
	t       testing.TB
	node    *node
	conn    *grpc.ClientConn
	stream  premote.Remoting_ReceiveClient
	address string // that it announces
	attacks bool   // as of a talker
}

func (n *node) dial(t testing.TB, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)
	conn, err := grpc.NewClient("passthrough:///"+n.address, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func bearing(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// meet connects a stranger that has the token.
func meet(t testing.TB, n *node) *stranger {
	t.Helper()
	return meetAs(t, n, secret)
}

// meetAs connects a stranger that has a token.
func meetAs(t testing.TB, n *node, token string) *stranger {
	t.Helper()
	s := &stranger{t: t, node: n, conn: n.dial(t), address: deadAddress(t)}
	stream, err := premote.NewRemotingClient(s.conn).Receive(bearing(t.Context(), token))
	require.NoError(t, err)
	s.stream = stream
	return s
}

// deadAddress returns an address without a listener.
func deadAddress(t testing.TB) string {
	t.Helper()
	return redistest.Address(t)
}

func (s *stranger) send(m *premote.RemoteMessage) { _ = s.stream.Send(m) }

// hello announces an address of the stranger.
func (s *stranger) hello(address string) *stranger {
	s.send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_ConnectRequest{ConnectRequest: &premote.ConnectRequest{
		ConnectionType: &premote.ConnectRequest_ServerConnection{
			ServerConnection: &premote.ServerConnection{SystemId: "stranger", Address: address},
		},
	}}})
	return s
}

func (s *stranger) batch(b *premote.MessageBatch) {
	s.send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: b}})
}

// batchOf returns a batch with one message.
func (s *stranger) batchOf(to string, m proto.Message) *premote.MessageBatch {
	data, err := proto.Marshal(m)
	require.NoError(s.t, err)
	return &premote.MessageBatch{
		TypeNames: []string{string(proto.MessageName(m))},
		Targets:   []*actor.PID{actor.NewPID(s.node.address, to)},
		Envelopes: []*premote.MessageEnvelope{{MessageData: data}},
	}
}

func (s *stranger) gateway() string { return s.node.gateway }

// ended waits for the node to end the stream, and returns why.
func (s *stranger) ended() error {
	s.t.Helper()
	result := make(chan error, 1)
	go func() {
		for {
			if _, err := s.stream.Recv(); err != nil {
				result <- err
				return
			}
		}
	}()
	return receive(s.t, result)
}

// welcomed waits for the answer to a hello.
func (s *stranger) welcomed() *stranger {
	s.t.Helper()
	m, err := s.stream.Recv()
	if err != nil && s.attacks {
		panic(turnedAway{err})
	}
	require.NoError(s.t, err)
	require.NotNil(s.t, m.GetConnectResponse())
	return s
}

// alive asserts that the node still serves its own process and peers.
func (n *node) alive(t testing.TB) {
	t.Helper()
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.In(time.Hour))
	require.NoError(t, err)
	meet(t, n).hello(deadAddress(t)).welcomed()
}

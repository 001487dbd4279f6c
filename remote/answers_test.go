package remote_test

import (
	"net"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// listening returns the address of a process that receives what actors of a node
// send.
func listening(t testing.TB) (address string, got <-chan any) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, all := grpc.NewServer(), make(chan any, 4096)
	premote.RegisterRemotingServer(server, ears{all: all})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String(), all
}

type ears struct {
	premote.UnimplementedRemotingServer
	all chan any
}

func (e ears) Receive(stream premote.Remoting_ReceiveServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetConnectRequest() != nil {
			err = stream.Send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_ConnectResponse{ConnectResponse: &premote.ConnectResponse{}}})
			if err != nil {
				return err
			}
			continue
		}
		b := m.GetMessageBatch()
		for _, envelope := range b.GetEnvelopes() {
			message, err := premote.Deserialize(envelope.GetMessageData(), b.GetTypeNames()[envelope.GetTypeId()], 0)
			if err != nil {
				return err
			}
			switch message.(type) {
			case *actor.Watch, *actor.Unwatch:
			default:
				e.all <- message
			}
		}
	}
}

func (s *stranger) gates() string { return s.gateway()[:len(s.gateway())-len("gateway")] + "gates" }

// Ask sends the gateway a message in the name of an actor.
func (s *stranger) ask(sender *actor.PID, m proto.Message) {
	b := s.batchOf(s.gateway(), m)
	b.Senders, b.Envelopes[0].Sender = []*actor.PID{sender}, 1
	s.batch(b)
}

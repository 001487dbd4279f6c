package remote_test

import (
	"io"
	"net"
	"testing"

	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// blackHole is the address of a server that says hello and then reads nothing.
func blackHole(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	premote.RegisterRemotingServer(server, hole{})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

type hole struct {
	premote.UnimplementedRemotingServer
}

func (hole) Receive(stream premote.Remoting_ReceiveServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	err := stream.Send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_ConnectResponse{ConnectResponse: &premote.ConnectResponse{}}})
	if err != nil {
		return err
	}
	<-stream.Context().Done()
	return io.EOF
}

package peer

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

// A response that fits into no frame is replaced by an Error to the same request. Other messages are
// not sent.
func TestResponseThatFitsNoFrameIsReplaced(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	mail := func(body proto.Message) *outgoing {
		return &outgoing{target: actor.NewPID("h:1", "a"), sender: actor.NewPID("h:2", "b"), body: body}
	}
	response := func(bytes int) *messages.GetTimerResponse {
		return &messages.GetTimerResponse{Request: 7, Timer: &messages.Timer{Content: &messages.Content{Body: make([]byte, bytes)}}}
	}
	fits := mail(response(limit / 2))
	require.True(t, fits.encodeWithin(limit))
	require.IsType(t, &messages.GetTimerResponse{}, fits.body)
	large := mail(response(limit))
	require.True(t, large.encodeWithin(limit))
	fault := large.body.(*messages.Error)
	require.EqualValues(t, 7, fault.GetRequest())
	require.Equal(t, messages.Code_CODE_TOO_LARGE, fault.GetCode())
	require.Equal(t, string(proto.MessageName(fault)), large.kind)
	require.False(t, mail(&messages.Leases{Leases: []*messages.Lease{{Body: make([]byte, limit)}}}).encodeWithin(limit))
}

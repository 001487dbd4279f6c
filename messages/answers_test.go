package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

// A verdict that cannot be sent, or is larger than a frame, would end the link of its subscriber.
func TestReasonsCanBeSent(t *testing.T) {
	t.Parallel()
	err := errors.New("bad body: \xff" + strings.Repeat("x", 1<<20))
	l := &messages.Lease{}
	for _, verdict := range []interface {
		proto.Message
		GetReason() string
	}{l.Nack(err), l.NackIn(0, err), l.Reject(err)} {
		data, err := proto.Marshal(verdict)
		require.NoError(t, err)
		require.Less(t, len(data), 8<<10)
		require.True(t, strings.HasPrefix(verdict.GetReason(), "bad body: \uFFFDxxx"))
	}
}

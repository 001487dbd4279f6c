package remote

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

func TestFrameOfManyRequestsHasFewEnoughValues(t *testing.T) {
	t.Parallel()
	parts := make([]*messages.TimerPart, maxRequestParts)
	for i := range parts {
		parts[i] = &messages.TimerPart{Topic: "t", Id: fmt.Sprint(i)}
	}
	link := &clientLink{cfg: DialConfig{Config: Config{MaxMessage: DefaultMaxMessage}}}
	for range 20 {
		link.out = append(link.out, wire.CommandOf(&messages.AddPartsRequest{Topic: "t", Id: "x", Parts: parts}))
	}
	sent := 0
	for frame := link.Take(); frame != nil; frame = link.Take() {
		sent += len(frame.GetCommands())
		data, err := proto.Marshal(frame)
		require.NoError(t, err)
		values := wire.MaxParts
		require.NoError(t, wire.CountParts(data, frame.ProtoReflect().Descriptor(), &values))
	}
	require.Equal(t, 20, sent)
}

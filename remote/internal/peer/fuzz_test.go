package peer

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

const here, there = "127.0.0.1:1", "127.0.0.1:2"

func fuzzed(t testing.TB) (*filter, *peer) {
	t.Helper()
	f := &filter{addresses: map[string]bool{here: true}, entries: map[string]*Entry{}}
	f.Open("gateway", func(e *Entry) {
		e.Watch, e.Terminated = true, true
		for _, kind := range wire.Requests {
			e.Takes[kind] = "gateway"
		}
		for _, kind := range wire.Subscribing {
			e.Takes[kind] = "hub"
		}
		for _, kind := range wire.Turning {
			e.Takes[kind] = "gates"
		}
	})
	return f, newPeer(there, "alice", "")
}

// FuzzInboundBatch checks that admitted envelopes are valid for protoactor's reader
// and addressed to actors that are open to peers.
func FuzzInboundBatch(f *testing.F) {
	seed := func(m proto.Message, change func(*premote.MessageBatch)) {
		body, err := proto.Marshal(m)
		require.NoError(f, err)
		b := &premote.MessageBatch{
			TypeNames: []string{string(proto.MessageName(m))},
			Targets:   []*actor.PID{actor.NewPID(here, "gateway")},
			Senders:   []*actor.PID{actor.NewPID(there, "me")},
			Envelopes: []*premote.MessageEnvelope{{MessageData: body, Sender: 1}},
		}
		change(b)
		data, err := proto.Marshal(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: b}})
		require.NoError(f, err)
		f.Add(data)
	}
	same := func(*premote.MessageBatch) {}
	seed(&messages.ScheduleRequest{Topic: "t", Id: "x"}, same)
	seed(&messages.SubscribeRequest{Topic: "t", Credits: 5}, same)
	seed(&messages.AcquireTurnRequest{Gate: "g", Place: 7}, same)
	seed(&messages.PutRecurringRequest{Schedules: []*messages.Recurring{{Name: "n", When: &messages.Recurrence{}}}}, same)
	seed(&actor.Watch{Watcher: actor.NewPID(there, "me")}, same)
	seed(&actor.Terminated{Who: actor.NewPID(there, "me")}, same)
	seed(&actor.Stop{}, same)
	seed(&messages.GetTimerRequest{}, func(b *premote.MessageBatch) { b.Envelopes[0].Target = 5 })
	seed(&messages.GetTimerRequest{}, func(b *premote.MessageBatch) { b.Senders[0].Address = "10.0.0.1:1" })

	f.Fuzz(func(t *testing.T, data []byte) {
		var m premote.RemoteMessage
		if (wire.Frames{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &m) != nil {
			return
		}
		batch := m.GetMessageBatch()
		if batch == nil {
			return
		}
		filter, from := fuzzed(t)
		if _, err := filter.Admit(batch, from); err != nil {
			return
		}
		for _, e := range batch.GetEnvelopes() {
			passed(t, batch, e)
		}
	})
}

// passed decodes an envelope as protoactor's reader does, and asserts its target.
func passed(t *testing.T, batch *premote.MessageBatch, e *premote.MessageEnvelope) {
	t.Helper()
	target := batch.Targets[e.Target]
	require.Equal(t, here, target.GetAddress())
	kind := batch.TypeNames[e.TypeId]
	if e.Sender > 0 {
		require.Equal(t, there, batch.Senders[e.Sender-1].GetAddress())
	}
	message, err := premote.Deserialize(e.MessageData, kind, e.SerializerId)
	switch m := message.(type) {
	case *actor.Terminated:
		require.NoError(t, err)
		require.Equal(t, there, m.GetWho().GetAddress())
	case *actor.Watch:
		require.Equal(t, there, m.GetWatcher().GetAddress())
	case *actor.Unwatch:
		require.Equal(t, there, m.GetWatcher().GetAddress())
	default:
		require.Contains(t, []string{"gateway", "hub", "gates"}, target.GetId())
		require.Equal(t, wire.SetOf(wire.Subscribing)[kind], target.GetId() == "hub", kind)
		require.Equal(t, wire.SetOf(wire.Turning)[kind], target.GetId() == "gates", kind)
		require.Equal(t, "alice", e.GetMessageHeader().GetHeaderData()[messages.PrincipalHeader])
		require.NotContains(t, []string{"actor.Stop", "actor.PoisonPill"}, kind)
	}
}

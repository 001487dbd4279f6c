package remote_test

import (
	"testing"

	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// malloryToken is the token of a peer that is hostile.
const malloryToken = "mallory-" + secret

// withMallory has two principals: tests and mallory.
func withMallory() remote.Config {
	return remote.Config{Tokens: map[string]string{secret: "tests", malloryToken: "mallory"}}
}

// talker sends frames in a session by hand.
type talker struct {
	t       testing.TB
	stream  grpc.ClientStream
	end     func()
	request uint64
	others  []proto.Message // replies to no request

	attacks bool // the node may turn it away: that ends the attack, not the test
}

// turnedAway is the panic that ends an attack whose stream the node has ended.
type turnedAway struct{ err error }

// assault is talk for an attack.
func assault(t testing.TB, n *node) *talker {
	t.Helper()
	conn := n.dial(t)
	stream, err := conn.NewStream(bearing(t.Context(), malloryToken), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, service+"Session")
	if err != nil {
		panic(turnedAway{err})
	}
	return &talker{t: t, stream: stream, end: func() { _ = conn.Close() }, attacks: true}
}

// intrude is meetAs for an attack.
func intrude(t testing.TB, n *node) *stranger {
	t.Helper()
	s := &stranger{t: t, node: n, conn: n.dial(t), address: deadAddress(t), attacks: true}
	stream, err := premote.NewRemotingClient(s.conn).Receive(bearing(t.Context(), malloryToken))
	if err != nil {
		panic(turnedAway{err})
	}
	s.stream = stream
	return s
}

// fine requires that err is nil, or ends the attack.
func (k *talker) fine(err error) {
	k.t.Helper()
	if err != nil && k.attacks {
		panic(turnedAway{err})
	}
	require.NoError(k.t, err)
}

func talk(t testing.TB, n *node, token string) *talker {
	t.Helper()
	conn := n.dial(t)
	stream, err := conn.NewStream(bearing(t.Context(), token), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, service+"Session")
	require.NoError(t, err)
	return &talker{t: t, stream: stream, end: func() { _ = conn.Close() }}
}

// commandWith is a Command of a message.
func commandWith(m proto.Message) *messages.Command {
	c := &messages.Command{}
	fields := c.ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		if fields.Get(i).Message().FullName() == proto.MessageName(m) {
			c.ProtoReflect().Set(fields.Get(i), protoreflect.ValueOfMessage(m.ProtoReflect()))
		}
	}
	return c
}

// say sends commands, all but the last 1,000 of them in separate frames.
func (k *talker) say(all ...proto.Message) {
	k.t.Helper()
	for len(all) > 0 {
		frame := &messages.Commands{}
		for len(all) > 0 && len(frame.GetCommands()) < 500 {
			frame.Commands = append(frame.Commands, commandWith(all[0]))
			all = all[1:]
		}
		k.fine(k.stream.SendMsg(frame))
	}
}

// replies waits for the next frame.
func (k *talker) replies() (all []proto.Message) {
	k.t.Helper()
	frame := &messages.Replies{}
	got := make(chan error, 1)
	go func() { got <- k.stream.RecvMsg(frame) }()
	k.fine(receive(k.t, got))
	for _, r := range frame.GetReplies() {
		m := r.ProtoReflect()
		all = append(all, m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("kind"))).Message().Interface())
	}
	return all
}

// answers waits for n answers, to the requests with numbers from from on.
func (k *talker) answers(n int, from uint64) map[uint64]proto.Message {
	k.t.Helper()
	got := map[uint64]proto.Message{}
	for len(got) < n {
		for _, m := range k.replies() {
			asked, ok := m.(interface{ GetRequest() uint64 })
			if ok && asked.GetRequest() >= from && asked.GetRequest() < from+uint64(n) {
				got[asked.GetRequest()] = m
			} else {
				k.others = append(k.others, m)
			}
		}
	}
	return got
}

// asks numbers requests, sends them, and waits for their answers in order.
func (k *talker) asks(all ...proto.Message) []proto.Message {
	k.t.Helper()
	from := k.request + 1
	for _, m := range all {
		k.request++
		number := m.ProtoReflect().Descriptor().Fields().ByName("request")
		m.ProtoReflect().Set(number, protoreflect.ValueOfUint64(k.request))
	}
	k.say(all...)
	got := k.answers(len(all), from)
	answers := make([]proto.Message, len(all))
	for i := range answers {
		answers[i] = got[from+uint64(i)]
	}
	return answers
}

// ask sends one request and waits for its answer.
func (k *talker) ask(m proto.Message) proto.Message {
	k.t.Helper()
	return k.asks(m)[0]
}

// refused sends a request and requires an Error with a code.
func (k *talker) refused(code messages.Code, m proto.Message) *messages.Error {
	k.t.Helper()
	answer := k.ask(m)
	fault, ok := answer.(*messages.Error)
	require.True(k.t, ok, "%v", answer)
	require.Equal(k.t, code, fault.GetCode(), fault.GetMessage())
	return fault
}

// subscription is a SubscribeRequest with a timeout that suits a slow machine.
func subscription(topic string, credits uint32) *messages.SubscribeRequest {
	return &messages.SubscribeRequest{Topic: topic, Subscriber: "s", Credits: credits, Timeout: durationpb.New(patience)}
}

// subscribes requires that a peer can subscribe to another topic.
func (n *node) subscribes(t testing.TB, token string) {
	t.Helper()
	k := talk(t, n, token)
	defer k.end()
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(subscription(redistest.Name(t), 1)))
}

package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
)

// Without the guard, each of these ends the node, stops its actors or is relayed.

// schedule is a request that does not affect what a test checks.
func (s *stranger) schedule(id string) *messages.ScheduleRequest {
	return &messages.ScheduleRequest{
		Topic: s.node.topic.Name(), Id: id, When: &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)},
	}
}

func TestInvalidFramesEndStream(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	spoil := func(change func(*premote.MessageBatch)) func(*stranger) {
		return func(s *stranger) {
			b := s.batchOf(s.gateway(), s.schedule("x"))
			change(b)
			s.hello(s.address).batch(b)
		}
	}
	for name, send := range map[string]func(*stranger){
		"a type below the table":     spoil(func(b *premote.MessageBatch) { b.Envelopes[0].TypeId = -1 }),
		"a type beyond the table":    spoil(func(b *premote.MessageBatch) { b.Envelopes[0].TypeId = 7 }),
		"a target below the table":   spoil(func(b *premote.MessageBatch) { b.Envelopes[0].Target = -1 }),
		"a target beyond the table":  spoil(func(b *premote.MessageBatch) { b.Envelopes[0].Target = 1 }),
		"a sender below the table":   spoil(func(b *premote.MessageBatch) { b.Envelopes[0].Sender = -1 }),
		"a sender beyond the table":  spoil(func(b *premote.MessageBatch) { b.Envelopes[0].Sender = 1 }),
		"no tables at all":           spoil(func(b *premote.MessageBatch) { b.Targets, b.TypeNames = nil, nil }),
		"another serializer":         spoil(func(b *premote.MessageBatch) { b.Envelopes[0].SerializerId = 1 }),
		"a serializer there is not":  spoil(func(b *premote.MessageBatch) { b.Envelopes[0].SerializerId = 9 }),
		"a body that is no protobuf": spoil(func(b *premote.MessageBatch) { b.Envelopes[0].MessageData = []byte{0xff} }),
		"a sender elsewhere": spoil(func(b *premote.MessageBatch) {
			b.Senders, b.Envelopes[0].Sender = []*actor.PID{actor.NewPID("10.0.0.1:80", "x")}, 1
		}),
		"a sender without an id": spoil(func(b *premote.MessageBatch) {
			b.Senders, b.Envelopes[0].Sender = []*actor.PID{{}}, 1
		}),
		"a batch before the hello": func(s *stranger) { s.batch(s.batchOf(s.gateway(), s.schedule("x"))) },
		"a hello from elsewhere":   func(s *stranger) { s.hello("10.0.0.1:80") },
		"a hello as the node":      func(s *stranger) { s.hello(n.server.Address()) },
		"a hello without a port":   func(s *stranger) { s.hello("127.0.0.1") },
		"two hellos":               func(s *stranger) { s.hello(s.address).hello(s.address) },
		"an empty frame":           func(s *stranger) { s.hello(s.address).send(&premote.RemoteMessage{}) },
		"a hello without a connection": func(s *stranger) {
			s.send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_ConnectRequest{ConnectRequest: &premote.ConnectRequest{}}})
		},
		"the end of another process's actor": func(s *stranger) {
			s.hello(s.address).batch(s.batchOf(s.gateway(), &actor.Terminated{Who: actor.NewPID("10.0.0.1:80", "x")}))
		},
		"the end of no actor": func(s *stranger) { s.hello(s.address).batch(s.batchOf(s.gateway(), &actor.Terminated{})) },
		"a watcher elsewhere": func(s *stranger) {
			s.hello(s.address).batch(s.batchOf(s.gateway(), &actor.Watch{Watcher: actor.NewPID("10.0.0.1:80", "x")}))
		},
		"no watcher": func(s *stranger) { s.hello(s.address).batch(s.batchOf(s.gateway(), &actor.Watch{})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := meet(t, n)
			send(s)
			require.Error(t, s.ended())
			n.alive(t)
		})
	}
}

func TestMessagesThatPeersMayNotSendAreDropped(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	bystander := n.ActorSystem().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*messages.ScheduleRequest); ok {
			t.Error("it was reached")
		}
	}))
	t.Cleanup(func() { _ = n.ActorSystem().Root.StopFuture(bystander).Wait() })
	gateway := n.Gateway().GetId()
	root := strings.TrimSuffix(gateway, "/gateway")
	for name, letter := range map[string]func(*stranger) *premote.MessageBatch{
		"a type that does not exist": func(s *stranger) *premote.MessageBatch {
			b := s.batchOf(gateway, s.schedule("x"))
			b.TypeNames[0] = "no.such.Type"
			return b
		},
		"stop":                      func(s *stranger) *premote.MessageBatch { return s.batchOf(gateway, &actor.Stop{}) },
		"stop the root":             func(s *stranger) *premote.MessageBatch { return s.batchOf(root, &actor.Stop{}) },
		"a poison pill":             func(s *stranger) *premote.MessageBatch { return s.batchOf(gateway, &actor.PoisonPill{}) },
		"a poison pill to the root": func(s *stranger) *premote.MessageBatch { return s.batchOf(root, &actor.PoisonPill{}) },
		"a drain of the root":       func(s *stranger) *premote.MessageBatch { return s.batchOf(root, &messages.Drain{}) },
		"an ack to the root":        func(s *stranger) *premote.MessageBatch { return s.batchOf(root, &messages.TopicDrained{}) },
		"a spawn": func(s *stranger) *premote.MessageBatch {
			return s.batchOf("activator", &premote.ActorPidRequest{Name: "x", Kind: "y"})
		},
		"another actor": func(s *stranger) *premote.MessageBatch { return s.batchOf(bystander.GetId(), s.schedule("x")) },
		"watching another actor": func(s *stranger) *premote.MessageBatch {
			return s.batchOf(bystander.GetId(), &actor.Watch{Watcher: actor.NewPID(s.address, "w")})
		},
		"a relay": func(s *stranger) *premote.MessageBatch {
			b := s.batchOf(gateway, s.schedule("x"))
			b.Targets[0].Address = "10.0.0.1:80"
			return b
		},
		"a touch": func(s *stranger) *premote.MessageBatch { return s.batchOf(gateway, &actor.Touch{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := meet(t, n)
			b := letter(s)
			s.hello(s.address).batch(b)
			// A later message on the same stream arrives.
			id := strings.ReplaceAll(name, " ", "-")
			s.batch(s.batchOf(gateway, s.schedule(id)))
			eventually(t, func() bool {
				_, _, err := n.Client().Get(t.Context(), n.topic.Name(), id)
				return err == nil
			})
			n.alive(t)
		})
	}
}

func TestWithoutRightTokenNothingIsRead(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	for _, token := range []string{"", "a-wrong-one-of-sixteen-bytes", secret + "x"} {
		stream, err := premote.NewRemotingClient(n.dial(t)).Receive(bearing(t.Context(), token))
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, codes.Unauthenticated, status.Code(err))
		_, err = premote.NewRemotingClient(n.dial(t)).ListProcesses(bearing(t.Context(), token), &premote.ListProcessesRequest{})
		require.Equal(t, codes.Unauthenticated, status.Code(err))
	}
	n.alive(t)
	require.Len(t, n.log.with("a peer was refused"), 1, "one line per host for any number of attempts")
}

func TestProtoactorsOwnCallsDoNotPanic(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, ctx := premote.NewRemotingClient(n.dial(t)), bearing(t.Context(), secret)
	_, err := c.ListProcesses(ctx, &premote.ListProcessesRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = c.GetProcessDiagnostics(ctx, &premote.GetProcessDiagnosticsRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	n.alive(t)
}

func TestWatchesOfPeerAreBounded(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	s := meet(t, n)
	s.hello(s.address).welcomed()
	for i := range 5000 {
		s.batch(s.batchOf(s.gateway(), &actor.Watch{Watcher: actor.NewPID(s.address, "w"+string(rune('a'+i%26))+time.Duration(i).String())}))
	}
	eventually(t, func() bool { return len(n.log.with("it watches too much")) == 1 })
	n.alive(t)
}

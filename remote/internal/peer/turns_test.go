package peer

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// flood is a peer that sends batches with verdicts.
type flood struct {
	premote.Remoting_ReceiveServer
	ctx   context.Context
	body  []byte
	most  int
	taken int
}

func (f *flood) Recv() (*premote.RemoteMessage, error) {
	if f.taken == f.most {
		<-f.ctx.Done()
		return nil, f.ctx.Err()
	}
	f.taken++
	return &premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: &premote.MessageBatch{
		TypeNames: []string{wire.FullName(&messages.Verdicts{})},
		Targets:   []*actor.PID{actor.NewPID(here, "gateway")},
		Envelopes: []*premote.MessageEnvelope{{MessageData: f.body}},
	}}}, nil
}

// The node reads no more than two batches of a link whose messages a hub has not handled.
func TestLinkWaitsForHub(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
		var waiting []*actor.PID
		router := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if m, ok := c.Message().(TouchTopic); ok && m.Topic == "topic" {
				waiting = append(waiting, c.Sender())
			}
		}))
		guard := NewGuard(system, Settings{Logger: quiet, Metrics: metrics.New(metrics.Options{})})
		defer guard.Close()
		guard.Router, guard.Filter.addresses[here] = router.GetId(), true
		guard.Filter.Open("gateway", func(e *Entry) { e.Takes[wire.FullName(&messages.Verdicts{})] = router.GetId() })
		body, err := proto.Marshal(&messages.Verdicts{Topic: "topic", Subscriber: "s"})
		require.NoError(t, err)
		ctx, hangUp := context.WithCancel(t.Context())
		f, done := &flood{ctx: ctx, body: body, most: 100}, make(chan error, 1)
		in := &inbound{stream: f, ctx: ctx, guard: guard, peer: newPeer(there, "alice", ""), turns: NewTurns(system, guard.Router)}
		defer in.turns.Close()
		go func() { done <- in.Serve() }()
		synctest.Wait()
		require.Equal(t, 2, f.taken)
		system.Root.Send(waiting[0], &actor.Touched{})
		synctest.Wait()
		require.Equal(t, 3, f.taken)
		hangUp()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, system.Root.StopFuture(router).Wait())
		<-time.After(time.Minute) // protoactor counts dead letters for five seconds
	})
}

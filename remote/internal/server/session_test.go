package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltest"
)

// served is a Server without a listener. Its router takes the place of that of subscriptions.
func served(t *testing.T, w *wakebelltest.World, router func(actor.Context)) *Server {
	t.Helper()
	system := w.Start(wakebell.Config{}).System()
	root := system.ActorSystem().Root
	guard := peer.NewGuard(system.ActorSystem(), peer.Settings{MaxMessage: 8 << 20, Logger: slog.New(slog.DiscardHandler), Metrics: metrics.New(metrics.Options{})})
	guard.Queues = access.NewQueueKeys(system, nil)
	s := &Server{guard: guard, system: system, waits: limits.NewBudget(limits.Waits), router: root.Spawn(actor.PropsFromFunc(router))}
	guard.Router = s.router.GetId()
	s.gates = system.ActorSystem().NewLocalPID(strings.TrimSuffix(system.Gateway().GetId(), "gateway") + "gates")
	t.Cleanup(func() {
		guard.Close()
		require.NoError(t, root.StopFuture(s.router).Wait())
	})
	return s
}

// flood is a caller that sends frames with verdicts.
type flood struct {
	grpc.ServerStream
	ctx   context.Context
	most  int
	taken int
}

func (f *flood) Context() context.Context { return f.ctx }
func (f *flood) SendMsg(any) error        { return nil }
func (f *flood) RecvMsg(m any) error {
	if f.taken == f.most {
		<-f.ctx.Done()
		return f.ctx.Err()
	}
	f.taken++
	m.(*messages.Commands).Commands = []*messages.Command{wire.CommandOf(&messages.Verdicts{Topic: "topic", Subscriber: "s"})}
	return nil
}

// The node reads no more than two frames of a session whose messages a hub has not handled.
func TestSessionWaitsForHub(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		var waiting []*actor.PID
		s := served(t, w, func(c actor.Context) {
			if m, ok := c.Message().(peer.TouchTopic); ok && m.Topic == "topic" {
				waiting = append(waiting, c.Sender())
			}
		})
		ctx, hangUp := context.WithCancel(t.Context())
		f, done := &flood{ctx: ctx, most: 100}, make(chan error, 1)
		go func() { done <- s.session(f) }()
		synctest.Wait()
		require.Equal(t, 2, f.taken)
		require.Len(t, waiting, 2)
		s.system.ActorSystem().Root.Send(waiting[0], &actor.Touched{})
		synctest.Wait()
		require.Equal(t, 3, f.taken)
		hangUp()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

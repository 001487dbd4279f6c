package server

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/wakebelltest"
)

// holdGates has the actor for gates take no message until the returned function is called.
func holdGates(t *testing.T, s *Server) (release func()) {
	t.Helper()
	mailbox, there := s.system.ActorSystem().ProcessRegistry.GetLocal(s.gates.GetId())
	require.True(t, there)
	mailbox.SendSystemMessage(s.gates, &actor.SuspendMailbox{})
	synctest.Wait()
	return func() {
		mailbox.SendSystemMessage(s.gates, &actor.ResumeMailbox{})
		synctest.Wait()
	}
}

// A caller that is gone before the actor for gates has its message keeps its turn for the ttl.
func TestTurnOutlivesCallerThatIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	hour := durationpb.New(60 * 60 * 1e9)
	for name, goes := range map[string]func(t *testing.T, c *httpCall, token turnToken){
		"extends over HTTP": func(t *testing.T, c *httpCall, token turnToken) {
			t.Helper()
			ctx, hangUp := context.WithCancel(t.Context())
			hangUp()
			_, err := c.extendTurn(ctx, &httpapi.ExtendTurnRequest{Gate: "gate", Token: token.String()})
			require.Error(t, err)
		},
		"extends on a new link": func(t *testing.T, c *httpCall, token turnToken) {
			t.Helper()
			in := c.newInbox(c.caller)
			require.NoError(t, in.send(c.gates, &messages.ExtendTurnRequest{Gate: "gate", Fence: token.fence, Place: token.place}))
			in.end(actor.TerminatedReason_AddressTerminated)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
				c := &httpCall{Server: served(t, w, func(actor.Context) {})}
				got, err := c.acquire(t.Context(), &httpapi.AcquireRequest{Gate: "gate", Ttl: hour})
				require.NoError(t, err)
				token, err := parseTurnToken(got.(*httpapi.AcquireResponse).GetToken())
				require.NoError(t, err)
				release := holdGates(t, c.Server)
				goes(t, c, token)
				release()
				_, err = c.system.Gates().TryAcquire(t.Context(), "gate")
				require.ErrorIs(t, err, gate.ErrHeld)
				_, err = c.releaseTurn(t.Context(), &httpapi.ReleaseTurnRequest{Gate: "gate", Token: token.String()})
				require.NoError(t, err)
			})
		})
	}
}

// A caller that extends a turn over HTTP leaves it to its owner, whose end releases it.
func TestExtendingOverHTTPLeavesOwner(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		c := &httpCall{Server: served(t, w, func(actor.Context) {})}
		owner := c.newInbox(c.caller)
		require.NoError(t, owner.send(c.gates, &messages.AcquireTurnRequest{Gate: "gate", Place: 7, Ttl: durationpb.New(60 * 60 * 1e9)}))
		answer, ok := owner.receive(t.Context(), nil)
		require.True(t, ok)
		require.IsType(t, &messages.Turn{}, answer)
		token := turnToken{7, answer.(*messages.Turn).GetFence()}
		_, err := c.extendTurn(t.Context(), &httpapi.ExtendTurnRequest{Gate: "gate", Token: token.String()})
		require.NoError(t, err)
		owner.end(actor.TerminatedReason_Stopped)
		synctest.Wait()
		turn, err := c.system.Gates().TryAcquire(t.Context(), "gate")
		require.NoError(t, err)
		require.NoError(t, turn.Release(t.Context()))
	})
}

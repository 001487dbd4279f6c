package delivery_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// An actor that receives leases, alone or in batches, resumes from its checkpoint and gives
// its timer a result.
func TestActorsKeepCheckpointsProgressAndResults(t *testing.T) {
	t.Parallel()
	for _, options := range [][]wakebell.HandlerOption{nil, {wakebell.BatchSize(2)}} {
		bodies, answers := make(chan string, 2), make(chan any, 10)
		sys, topic := stacktest.Forwarding(t, redistest.Shared(t), stacktest.To(func(c actor.Context) {
			lease, ok := c.Message().(*messages.Lease)
			switch m := c.Message().(type) {
			case *messages.LeaseBatch:
				lease = m.GetLeases()[0]
			case *messages.KeepResponse, *messages.Error:
				answers <- m
				return
			default:
				if !ok {
					return
				}
			}
			bodies <- string(lease.GetBody())
			if lease.GetAttempt() > 1 {
				c.Respond(lease.AckWith(&messages.Content{Body: []byte("42"), ContentType: "application/json"}))
				return
			}
			node, next := c.Sender(), lease.Checkpoint([]byte(`{"number":"8"}`), "application/json")
			next.Request = 7
			c.Request(node, lease.Progress(0.5, "half"))
			c.Request(node, next)
			c.Request(node, lease.Progress(2, ""))
			c.Request(node, &messages.KeepRequest{Delivery: lease.GetDelivery()})
			c.Request(node, (&messages.Lease{Delivery: 1}).Progress(1, "another's"))
			go func(system *actor.ActorSystem) { // once they are answered
				for len(answers) < 5 {
					<-time.After(time.Millisecond)
				}
				system.Root.Send(node, lease.NackIn(0, nil))
			}(c.ActorSystem())
		}), options...)
		_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{Number: "7"}, wakebell.ID("a"))
		require.NoError(t, err)
		<-bodies
		require.JSONEq(t, `{"number":"8"}`, <-bodies)
		ending, err := sys.Client().Wait(t.Context(), topic.Name(), "a")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.EndDone, ending.End)
		require.Equal(t, "half", ending.Progress.Note)
		value, err := wakebell.ReadResult[int](t.Context(), sys.Client(), topic.Name(), "a", ending.Result)
		require.NoError(t, err)
		require.Equal(t, 42, value)

		codes := map[messages.Code]int{}
		for range 5 {
			answer := <-answers
			fault, _ := answer.(*messages.Error)
			codes[fault.GetCode()]++
			if kept, ok := answer.(*messages.KeepResponse); ok && kept.GetRequest() == 7 {
				codes[messages.Code_CODE_UNSPECIFIED] += 10
			}
		}
		require.Equal(t, map[messages.Code]int{
			messages.Code_CODE_UNSPECIFIED: 12, messages.Code_CODE_INVALID: 2, messages.Code_CODE_LEASE_LOST: 1,
		}, codes, "two were kept, one of them with its number")
	}
}

package observe_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestHandlersThatRunForLongAreReported shows operators where a handler is stuck and since when,
// for handlers of timers, of batches and of shards.
func TestHandlersThatRunForLongAreReported(t *testing.T) {
	t.Parallel()
	quick, slow, divided := wakebell.NewTopic[int]("quick"), wakebell.NewTopic[int]("slow"), wakebell.NewTopic[int]("divided")
	batch, stuck := wakebell.NewTopic[int]("batch"), []string{"slow", "divided", "batch"}
	slowly := func(ctx context.Context, _ wakebell.Timer[int]) error {
		select {
		case <-time.After(40 * time.Second):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(quick, func(context.Context, wakebell.Timer[int]) error { return nil }),
		wakebell.Handle(slow, slowly),
		wakebell.Handle(divided, slowly, wakebell.Shards(2)),
		wakebell.HandleBatch(batch, func(ctx context.Context, _ []wakebell.Timer[int]) error {
			return slowly(ctx, wakebell.Timer[int]{})
		}, wakebell.BatchSize(3), wakebell.BatchWait(time.Second)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		read := func(topic string) wakebelltype.Overview {
			all, err := w.Client().Overview(t.Context(), topic)
			require.NoError(t, err)
			return all[0]
		}
		began := time.Now()
		for _, topic := range []wakebell.Topic[int]{quick, slow, divided, batch} {
			for _, id := range []string{"a", "b", "c"} {
				_, err := topic.Schedule(t.Context(), w.Client(), 1, wakebell.ID(id))
				require.NoError(t, err)
			}
		}
		w.Advance(5 * time.Second)
		require.Empty(t, read("slow").Reports)
		w.Advance(20 * time.Second)
		require.Empty(t, read("quick").Reports)
		for _, topic := range stuck {
			o := read(topic)
			require.Len(t, o.Longest(), 3, topic)
			for _, id := range []string{"a", "b", "c"} {
				run, found := o.Run(id)
				require.True(t, found, "%s on %s", id, topic)
				require.Equal(t, 1, run.Attempt)
				require.Equal(t, o.Reports[0].Node, run.Node)
				require.WithinDuration(t, began, run.Since, 2*time.Second)
			}
		}
		w.Advance(30 * time.Second)
		for _, topic := range stuck {
			require.Empty(t, read(topic).Reports, "%s: a report without anything to say is removed", topic)
		}
	})
}

// TestTimersThatTargetDoesNotAnswerAreReported does the same for a timer that an actor has.
func TestTimersThatTargetDoesNotAnswerAreReported(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		sys, topic := stacktest.Forwarding(t, rdb, stacktest.To(func(actor.Context) {}), wakebell.LeaseTTL(time.Minute))
		_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{}, wakebell.ID("a"))
		require.NoError(t, err)
		longest := func() []wakebelltype.NodeRun {
			all, err := sys.Client().Overview(t.Context(), topic.Name())
			require.NoError(t, err)
			return all[0].Longest()
		}
		<-time.After(5 * time.Second)
		require.Empty(t, longest())
		<-time.After(15 * time.Second)
		require.Len(t, longest(), 1)
		require.Equal(t, "a", longest()[0].ID)
	})
}

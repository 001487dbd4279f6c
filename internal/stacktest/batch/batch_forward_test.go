package batch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

func idsOf(b *messages.LeaseBatch) (ids []string) {
	for _, l := range b.GetLeases() {
		ids = append(ids, l.GetId())
	}
	return ids
}

// receiving returns an actor that passes batches on, and answers them with answer.
func receiving(got chan<- *messages.LeaseBatch, answer func(actor.Context, *messages.LeaseBatch)) *actor.Props {
	return actor.PropsFromFunc(func(c actor.Context) {
		if b, ok := c.Message().(*messages.LeaseBatch); ok {
			got <- b
			answer(c, b)
		}
	})
}

func toEach(props *actor.Props) func(*actor.ActorSystem) wakebell.Target {
	return func(*actor.ActorSystem) wakebell.Target { return wakebell.ToEachActor(props) }
}

func TestActorAnswersLeasesOfBatch(t *testing.T) {
	t.Parallel()
	got := make(chan *messages.LeaseBatch, 10)
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), toEach(receiving(got, func(c actor.Context, b *messages.LeaseBatch) {
		for _, l := range b.GetLeases() {
			switch {
			case l.GetId() == "bad":
				c.Respond(l.Reject(errors.New("no such account")))
				c.Respond(l.Ack()) // only the first answer counts
			case l.GetId() == "busy" && l.GetAttempt() == 1:
				c.Respond(l.NackIn(0, errors.New("busy")))
			}
		}
		c.Respond(b.Ack())
	})), wakebell.BatchSize(10))
	_, err := sys.Client().Schedule(t.Context(), topic.Draft(stacktest.Invoice{Number: "7", Cents: 1}, wakebell.ID("bad")),
		topic.Draft(stacktest.Invoice{Number: "7", Cents: 2}, wakebell.ID("busy")), topic.Draft(stacktest.Invoice{Number: "7", Cents: 3}, wakebell.ID("good")))
	require.NoError(t, err)
	first, second := stacktest.Receive(t, got), stacktest.Receive(t, got)
	require.Equal(t, []string{"bad", "busy", "good"}, idsOf(first))
	require.Equal(t, topic.Name(), first.GetTopic())
	body, err := topic.Read(first.GetLeases()[2])
	require.NoError(t, err)
	require.Equal(t, stacktest.Invoice{Number: "7", Cents: 3}, body)
	require.Equal(t, []string{"busy"}, idsOf(second))
	counters := stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 2 })
	require.Equal(t, int64(1), counters.Retried)
	require.Equal(t, "no such account", stacktest.AwaitDead(t, sys, topic.Name()).Reason)
}

func TestAnswersToWholeBatch(t *testing.T) {
	t.Parallel()
	got := make(chan *messages.LeaseBatch, 10)
	answers := []func(*messages.LeaseBatch) any{
		func(b *messages.LeaseBatch) any { return b.Release() },
		func(b *messages.LeaseBatch) any { return b.NackIn(0, errors.New("busy")) },
		func(b *messages.LeaseBatch) any { return b.Nack(wakebell.RetryIn(0)) },
		func(b *messages.LeaseBatch) any { return b.Reject(errors.New("no")) },
	}
	calls := 0
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), stacktest.To(func(c actor.Context) {
		if b, ok := c.Message().(*messages.LeaseBatch); ok {
			calls++
			c.Respond(answers[calls-1](b))
			got <- b
		}
	}), wakebell.BatchSize(10), wakebell.MaxConcurrent(1), wakebell.BatchWait(100*time.Millisecond), wakebell.RetryBackoff(time.Millisecond, time.Millisecond))
	_, err := sys.Client().Schedule(t.Context(), topic.Draft(stacktest.Invoice{}, wakebell.ID("a")), topic.Draft(stacktest.Invoice{}, wakebell.ID("b")))
	require.NoError(t, err)
	for _, attempt := range []uint32{1, 1, 2, 3} {
		b := stacktest.Receive(t, got)
		require.ElementsMatch(t, []string{"a", "b"}, idsOf(b))
		require.Equal(t, attempt, b.GetLeases()[1].GetAttempt())
	}
	counters := stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.DeadLettered == 2 })
	require.Equal(t, int64(2), counters.Released)
	require.Equal(t, int64(4), counters.Retried)
}

func TestActorExtendsBatchAndLearnsOfItsEnds(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		const ttl = 3 * time.Second
		got, ended := make(chan *messages.LeaseBatch, 10), make(chan *messages.LeaseEnded, 10)
		var sender *actor.PID
		sys, topic := stacktest.Forwarding(t, rdb, func(s *actor.ActorSystem) wakebell.Target {
			return stacktest.To(func(c actor.Context) {
				switch m := c.Message().(type) {
				case *messages.LeaseBatch:
					if m.GetLeases()[0].GetAttempt() > 1 {
						c.Respond(m.Ack())
						return
					}
					sender = c.Sender()
					got <- m
				case *messages.LeaseEnded:
					ended <- m
				}
			})(s).NotifyEnd()
		}, wakebell.LeaseTTL(ttl), wakebell.BatchSize(10))
		c := sys.Client()
		_, err := c.Schedule(t.Context(), topic.Draft(stacktest.Invoice{}, wakebell.ID("a")), topic.Draft(stacktest.Invoice{}, wakebell.ID("b")),
			topic.Draft(stacktest.Invoice{}, wakebell.ID("c")))
		require.NoError(t, err)
		b := <-got
		root := sys.ActorSystem().Root
		for range 3 { // more than two leases
			<-time.After(ttl * 2 / 3)
			root.Send(sender, b.Extend())
		}
		_, err = c.Cancel(t.Context(), topic.Name(), "a")
		require.NoError(t, err)
		end := <-ended
		require.Equal(t, "a", end.GetId())
		require.Equal(t, messages.LeaseEnd_LEASE_END_CANCELLED, end.GetReason())
		root.Send(sender, b.GetLeases()[1].Ack())
		for range 3 { // more than two leases, in which the one that is answered stays held
			<-time.After(ttl * 2 / 3)
			root.Send(sender, b.GetLeases()[2].Extend())
		}
		end = <-ended
		require.Equal(t, "c", end.GetId(), "it was neither answered nor extended")
		counters := stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 2 })
		require.Equal(t, int64(1), counters.Lost)
		require.Equal(t, int64(1), counters.Cancelled)
		require.Equal(t, int64(4), counters.Delivered)
	})
}

func TestBatchOfActorThatEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(actor.Context){
		"stop":  func(c actor.Context) { c.Stop(c.Self()) },
		"panic": func(actor.Context) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan *messages.LeaseBatch, 10)
			sys, topic := stacktest.Forwarding(t, redistest.Shared(t), toEach(receiving(got, func(c actor.Context, b *messages.LeaseBatch) {
				if b.GetLeases()[0].GetId() == "a" {
					end(c)
					return
				}
				c.Respond(b.Ack())
			})), wakebell.LeaseTTL(time.Hour), wakebell.BatchSize(10), wakebell.MaxConcurrent(1))
			_, err := sys.Client().Schedule(t.Context(), topic.Draft(stacktest.Invoice{}, wakebell.ID("a")), topic.Draft(stacktest.Invoice{}, wakebell.ID("b")))
			require.NoError(t, err)
			stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Crashed == 2 })
			_, err = sys.Client().Schedule(t.Context(), topic.Draft(stacktest.Invoice{}, wakebell.ID("c")))
			require.NoError(t, err)
			stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 1 })
		})
	}
}

func TestSpanOfBatchLinksToThoseThatScheduledIt(t *testing.T) {
	t.Parallel()
	for name, middleware := range map[string][]wakebell.BatchMiddleware{
		"plain":      nil,
		"middleware": {func(next wakebell.BatchFunc) wakebell.BatchFunc { return next }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			traces := stacktest.NewSpans()
			topic := wakebell.NewTopic[string](redistest.Name(t))
			rdb := redistest.Shared(t)
			c := stacktest.Client(t, rdb, connection.Config{TracerProvider: traces})
			for _, id := range stacktest.Numbered(3) {
				_, err := topic.Schedule(t.Context(), c, "x", wakebell.ID(id))
				require.NoError(t, err)
			}
			stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{TracerProvider: traces}), wakebell.Config{Handlers: []wakebell.Handler{
				wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
					_, inner := traces.Tracer("test").Start(timers[1].Context(), "inner")
					inner.End()
					return wakebell.BatchError{"t001": wakebell.Reject(errors.New("no"))}
				}, wakebell.WithBatch(middleware...)),
			}}))
			batch := traces.Await(t, "process "+topic.Name(), 1)[0]
			require.Len(t, batch.Links, 3)
			for i, scheduled := range traces.Named("schedule " + topic.Name()) {
				require.Equal(t, scheduled.SpanContext.SpanID(), batch.Links[i].SpanContext.SpanID())
			}
			require.Equal(t, int64(3), stacktest.AttributesOf(batch)["messaging.batch.message_count"])
			require.Equal(t, "mixed", stacktest.AttributesOf(batch)["wakebell.outcome"])
			require.Equal(t, "no", batch.Status.Description)
			require.Equal(t, batch.SpanContext.SpanID(), traces.Named("inner")[0].Parent.SpanID())
		})
	}
}

package remote_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestPartsEndWhoeverHandlesThem has the parts of a join handled by a batch handler, an actor
// and a subscriber: the node notes their ends.
func TestPartsEndWhoeverHandlesThem(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	batched, forwarded := wakebell.NewTopic[string](name+"-batched"), wakebell.NewTopic[string](name+"-forwarded")
	subscribed, done := wakebell.NewTopic[string](name+"-subscribed"), wakebell.NewTopic[string](name+"-done")
	answers := wakebell.ToEachActor(actor.PropsFromFunc(func(c actor.Context) {
		if lease, ok := c.Message().(*messages.Lease); ok && lease.GetId() == "bad" {
			c.Respond(lease.Reject(errors.New("never")))
		} else if ok {
			c.Respond(lease.Ack())
		}
	}))
	type part = wakebelltype.Part
	ends := make(chan map[part]wakebelltype.End, 1)
	n := serve(t, withToken(),
		wakebell.HandleBatch(batched, func(_ context.Context, timers []wakebell.Timer[string]) error {
			failed := wakebell.BatchError{}
			for _, timer := range timers {
				if timer.ID == "bad" {
					failed[timer.ID] = wakebell.Reject(errors.New("never"))
				}
			}
			return failed
		}),
		wakebell.Forward(forwarded, answers),
		wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[string]) error {
			seen := map[part]wakebelltype.End{}
			for p, err := range timer.Parts(ctx) {
				if err != nil {
					return err
				}
				seen[p.Part] = p.End
			}
			ends <- seen
			return nil
		}))
	c := dial(t, n)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- c.Subscribe(ctx, remote.Subscription{Topic: subscribed.Name(), Name: "s", Credits: 10}, func(_ context.Context, l *messages.Lease) error {
			if l.GetId() == "bad" {
				return wakebell.Reject(errors.New("never"))
			}
			return nil
		})
	}()
	var parts []wakebell.Draft
	expected := map[part]wakebelltype.End{}
	for _, topic := range []wakebell.Topic[string]{batched, forwarded, subscribed} {
		parts = append(parts, topic.Draft("", wakebell.ID("good")), topic.Draft("", wakebell.ID("bad")))
		expected[part{Topic: topic.Name(), ID: "good"}] = wakebelltype.EndDone
		expected[part{Topic: topic.Name(), ID: "bad"}] = wakebelltype.EndDead
	}
	_, err := n.Client().Schedule(ctx, wakebell.Batch(parts...).Then(done.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
	require.NoError(t, err)
	require.Equal(t, expected, <-ends)
	stop()
	require.NoError(t, <-over)
}

// TestDraftsOfJoinsAreRefusedElsewhere checks that a client without Redis does not schedule a
// timer without its join.
func TestDraftsOfJoinsAreRefusedElsewhere(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	for _, d := range []wakebell.Draft{
		n.topic.Draft("", wakebell.ID("a"), wakebell.In(time.Hour), wakebell.After(wakebelltype.Part{Topic: n.topic.Name(), ID: "b"})),
		n.topic.Draft("", wakebell.ID("a"), wakebell.PartOf(n.topic.Name(), "b")),
	} {
		_, err := c.Schedule(t.Context(), d)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		_, _, err = c.Get(t.Context(), n.topic.Name(), "a")
		require.ErrorIs(t, err, wakebell.ErrNotFound)
	}
}

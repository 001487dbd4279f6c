package faults

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell"
	wire "github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// subscribe handles the timers of a node in another process until ctx ends.
func (c NodeConfig) subscribe(ctx context.Context, n *node) error {
	client, err := remote.Dial(ctx, c.Remote, remote.DialConfig{
		Config: remote.Config{Logger: slog.New(slog.DiscardHandler)}, DeadLink: time.Minute,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	go n.watchClock(ctx)
	n.report(Line{Event: EventReady})
	// The name is random, so that a restarted subscriber does not return the leases
	// of the killed one: they have to expire.
	as := remote.Subscription{Topic: c.Topic, Name: rand.Text(), Credits: c.MaxConcurrent}
	topic, w := wakebell.NewTopic[Work](c.Topic), worker{n}
	err = client.Subscribe(ctx, as, func(ctx context.Context, l *wire.Lease) error {
		work, err := topic.Read(l)
		if err != nil {
			return wakebell.Reject(err)
		}
		return w.handle(ctx, wakebell.Timer[Work]{Body: work, Meta: wakebell.Meta{
			ID: l.GetId(), Attempt: int(l.GetAttempt()), Failures: int(l.GetFailures()),
			Activation: l.GetActivation().AsTime(), Delivered: l.GetDelivered().AsTime(),
		}})
	})
	n.report(Line{Event: EventEnded})
	return err
}

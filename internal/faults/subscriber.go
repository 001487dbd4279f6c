package faults

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	wire "github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// subscribe handles the timers of a node in another process until ctx ends.
func (c NodeConfig) subscribe(ctx context.Context, n *node) error {
	conn, err := connection.WithoutRedis(connection.Config{Logger: slog.New(lateLeases{n})})
	if err != nil {
		return err
	}
	client, err := remote.Dial(ctx, c.Remote, conn, remote.DialConfig{
		DeadLink: time.Minute,
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

// lateLeases is a log that reports the leases that a subscriber drops, and nothing
// else.
type lateLeases struct{ reporter }

func (lateLeases) Enabled(context.Context, slog.Level) bool { return true }

func (h lateLeases) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "a lease arrived after its end" {
		return nil
	}
	line := Line{Event: EventLate}
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case string:
			if a.Key == "id" {
				line.ID = v
			}
		case uint64:
			line.Attempt = int(v)
		case time.Time:
			if a.Key == "activation" {
				line.Activation = v
			} else {
				line.Delivered = v
			}
		}
		return true
	})
	h.report(line)
	return nil
}

func (h lateLeases) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h lateLeases) WithGroup(string) slog.Handler { return h }

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/outgoing"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Publish publishes messages to one or several queues, in order. It checks all
// drafts before it publishes the first. Consecutive messages of one queue are
// published in one atomic round trip, up to 500 of them (250 with FullDropsOldest) and 1 MiB.
//
// After an error, the messages that are returned are published, and the others may
// be. Call Publish again with the same drafts in the same order: it publishes no message twice
// within a minute or, if all drafts have deduplication keys, within the window. With others
// beside it, a draft without such a key is published again.
func (c *Client) Publish(ctx context.Context, drafts ...Draft) ([]wakebelltype.QueuePublished, error) {
	if c == nil || c.edge.Plain(ctx) {
		return c.publish(ctx, drafts)
	}
	for i, d := range drafts {
		if d.Err != nil {
			return nil, fmt.Errorf("message %d: %w", i, d.Err)
		}
	}
	var out []wakebelltype.QueuePublished
	err := outgoing.Each(ctx, c.edge, "publish", drafts, (*Draft).outgoing, (*Draft).apply, func(ctx context.Context, drafts []Draft) (err error) {
		out, err = c.publish(ctx, drafts)
		return err
	})
	return out, err
}

// outgoing returns the draft as the schedule middleware sees it.
func (d *Draft) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingMessage, Topic: d.Queue.Keys.Name, Body: d.Payload, Headers: d.Headers}
}

// apply sets what the schedule middleware may change.
func (d *Draft) apply(o *wakebelltype.Outgoing) { d.Payload, d.Headers = o.Body, o.Headers }

// publish publishes drafts as they are.
func (c *Client) publish(ctx context.Context, drafts []Draft) ([]wakebelltype.QueuePublished, error) {
	all := make([]message, len(drafts))
	for i, d := range drafts {
		var err error
		if all[i], err = c.check(d); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	out := make([]wakebelltype.QueuePublished, 0, len(all))
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].settings == all[from].settings {
			to++
		}
		part, err := publishOne(ctx, all[from:to])
		out = append(out, part...)
		if err != nil {
			return out, err
		}
		from = to
	}
	return out, nil
}

// message is a draft that was checked.
type message struct {
	settings Settings
	queue    *queuestore.Queue
	message  queuestore.Message
}

func (c *Client) check(d Draft) (message, error) {
	if d.Err != nil {
		return message{}, d.Err
	}
	if err := d.Queue.validate(); err != nil {
		return message{}, err
	}
	q, err := c.queue(d.Queue.Keys)
	if err != nil {
		return message{}, err
	}
	size := len(d.Payload)
	for _, h := range d.Headers {
		size += len(h.Key) + len(h.Value)
	}
	if size > c.limit {
		return message{}, argument.Invalid("body", "%d bytes with its headers, the limit is %d", size, c.limit)
	}
	m, err := queuestore.MessageOf(d.Payload, d.Key, d.Tail)
	m.Headers = d.Headers
	return message{d.Queue, q, m}, err
}

// publishOne publishes messages of one queue. With FullWaits it waits for room.
func publishOne(ctx context.Context, messages []message) (out []wakebelltype.QueuePublished, err error) {
	all := make([]queuestore.Message, len(messages))
	for i, m := range messages {
		all[i] = m.message
	}
	queue, set := messages[0].queue, messages[0].settings
	options := queuestore.PublishOptions{
		Window: set.DeduplicationWindow, Cap: set.PendingCap,
		DropOldest: set.WhenFull == FullDropsOldest, OwnKeys: set.FreeKeyOnFailure,
	}
	var full error
	for pause := roomFirst; ; pause = min(2*pause, roomLast) {
		part, _, err := queue.Publish(ctx, options, all[len(out):]...)
		out = append(out, part...)
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, ErrFull):
			return out, errors.Join(full, err)
		case set.WhenFull != FullWaits:
			return out, err
		}
		full = err
		select {
		case <-ctx.Done():
			return out, errors.Join(full, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

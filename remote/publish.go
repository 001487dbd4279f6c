package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// roomFirst and roomLast are the first and the longest pause between two attempts
// of Publish to add to a full queue.
const roomFirst, roomLast = 5 * time.Millisecond, 250 * time.Millisecond

// Publish does what queue.Client.Publish does. Many drafts are sent in several
// requests, each checked as a whole. With an error it returns the results of the
// messages that were published.
func (q *Queues) Publish(ctx context.Context, drafts ...queue.Draft) (out []wakebelltype.QueuePublished, err error) {
	for i, d := range drafts {
		if d.Err != nil {
			return nil, fmt.Errorf("message %d: %w", i, d.Err)
		}
	}
	err = outgoing.Each(ctx, q.client.cfg.edge, "publish", drafts, messageOutgoing, messageApply, func(ctx context.Context, drafts []queue.Draft) (err error) {
		out, err = q.publish(ctx, drafts)
		return err
	})
	return out, err
}

// publish sends drafts as they are.
func (q *Queues) publish(ctx context.Context, drafts []queue.Draft) ([]wakebelltype.QueuePublished, error) {
	span := q.client.cfg.edge.Tracer.Inject(ctx)
	out := make([]wakebelltype.QueuePublished, 0, len(drafts))
	pause, full := roomFirst, error(nil)
	for len(out) < len(drafts) {
		request, n, err := convert.PublishMessage(drafts[len(out):]...)
		if err != nil {
			return out, fmt.Errorf("message %d: %w", len(out)+n, err)
		}
		request.Trace = span
		answer, err := call[*messages.PublishResponse](ctx, q.client, request)
		if err != nil {
			return out, errors.Join(full, err)
		}
		for _, m := range answer.GetMessages() {
			out = append(out, wakebelltype.QueuePublished{ID: m.GetId(), Fresh: m.GetFresh()})
		}
		if len(answer.GetMessages()) >= n {
			pause, full = roomFirst, nil
			continue
		}
		full = fmt.Errorf("publish: %w", queue.ErrFull)
		if drafts[len(out)].Queue.WhenFull != queue.FullWaits {
			return out, full
		}
		select {
		case <-ctx.Done():
			return out, errors.Join(full, context.Cause(ctx))
		case <-time.After(pause):
			pause = min(2*pause, roomLast)
		}
	}
	return out, nil
}

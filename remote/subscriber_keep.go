package remote

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Checkpoint does for a lease of Subscribe what wakebell.Timer.Checkpoint does: it replaces
// the body of the timer, from which a later attempt resumes. The body is encoded by its type,
// as that of a wakebell.Topic[any], and passes ScheduleMiddleware. One call for a lease runs
// at a time. Errors include wakebell.ErrLeaseLost, if the lease has ended: nothing was stored
// then; wakebell.ErrInvalid, if the body cannot be encoded or is larger than the limit of the
// node; and those of Schedule, after which the body may have been stored.
func (c *Client) Checkpoint(ctx context.Context, l *messages.Lease, body any) error {
	content, err := contentOf(body, l.GetContentType())
	if err != nil {
		return err
	}
	content.Headers = l.GetHeaders()
	return c.encoded(ctx, l, content, func(ctx context.Context) error {
		return c.keep(ctx, l, &messages.KeepRequest{What: &messages.KeepRequest_Checkpoint{Checkpoint: content}, Encoded: c.encodes()})
	})
}

// Progress does for a lease of Subscribe what wakebell.Timer.Progress does. Each call is a
// request to the node, which stores one a second, and the last one. Errors are those of
// Checkpoint; handlers may ignore them.
func (c *Client) Progress(ctx context.Context, l *messages.Lease, fraction float64, note string) error {
	return c.keep(ctx, l, &messages.KeepRequest{
		What: &messages.KeepRequest_Progress{Progress: &messages.Progress{Fraction: fraction, Note: note}},
	})
}

// Result gives the timer of a lease of Subscribe a result, which is sent with the ack, if the
// handler returns nil: see wakebell.HandleResult. The value is encoded by its type, as the
// body of a wakebell.Topic[any], and passes ScheduleMiddleware. A later call replaces it. A
// result of more than 4 KiB with its headers makes the timer a dead letter. Errors include
// wakebell.ErrLeaseLost and wakebell.ErrInvalid.
func (c *Client) Result(ctx context.Context, l *messages.Lease, value any) error {
	content, err := contentOf(value, "")
	if err != nil {
		return err
	}
	return c.encoded(ctx, l, content, func(context.Context) error {
		if err := checkEncodable(content); err != nil {
			return err // in the frame of the ack it would end the link, again and again
		}
		t := c.link.holder(l)
		switch {
		case t != nil && t.of.Queue.Name != "":
			return argument.Invalid("lease", "messages of queues have no results")
		case t == nil, !t.gives(l.GetDelivery(), &messages.Ack{Delivery: l.GetDelivery(), Result: content, Encoded: c.encodes()}):
			return lost(l)
		}
		return nil
	})
}

func contentOf(value any, contentType string) (*messages.Content, error) {
	raw, own, err := codec.For[any]().Encode(value)
	if err != nil {
		return nil, fmt.Errorf("%w: body: %w", wakebell.ErrInvalid, err)
	}
	if own != "" {
		contentType = own
	}
	return &messages.Content{Body: raw, ContentType: contentType}, nil
}

// encodes reports whether bodies pass a ScheduleMiddleware.
func (c *Client) encodes() bool { return len(c.cfg.edge.Middleware) > 0 }

// encoded calls next when the content has passed the ScheduleMiddleware.
func (c *Client) encoded(ctx context.Context, l *messages.Lease, content *messages.Content, next func(context.Context) error) error {
	edge := *c.cfg.edge
	edge.Tracer = nil // the timer keeps the span that scheduled it
	out := &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingTimer, Topic: l.GetTopic(), ID: l.GetId(),
		Headers: convert.HeaderList(content.GetHeaders()), Body: content.GetBody(), ContentType: content.GetContentType(),
	}
	return edge.Send(ctx, "keep", []*wakebelltype.Outgoing{out}, func(ctx context.Context, out []*wakebelltype.Outgoing) error {
		content.Body, content.ContentType, content.Headers = out[0].Body, out[0].ContentType, convert.HeaderMap(out[0].Headers)
		return next(ctx)
	})
}

// keep sends a KeepRequest until it is answered.
func (c *Client) keep(ctx context.Context, l *messages.Lease, m *messages.KeepRequest) error {
	t := c.link.holder(l)
	if t == nil {
		return lost(l)
	}
	m.Topic, m.Subscriber, m.Id, m.Delivery = t.of.Topic, t.of.Name, l.GetId(), l.GetDelivery()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout) // it is repeated while the node refuses it
	defer cancel()
	_, err := call[*messages.KeepResponse](ctx, c, m)
	return err
}

func lost(l *messages.Lease) error {
	return fmt.Errorf("keep of %s on %s: %w", argument.Quote(l.GetId()), argument.Quote(l.GetTopic()), wakebell.ErrLeaseLost)
}

// holder returns the subscriber whose handler runs with a lease; nil: there is none.
func (s *clientLink) holder(l *messages.Lease) *subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, t := range s.subscribers {
		if key.topic == l.GetTopic() && t.holds(l) {
			return t
		}
	}
	return nil
}

func (t *subscriber) holds(l *messages.Lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.running[l.GetDelivery()]
	return r != nil && r.id == l.GetId()
}

// gives sets the ack of a running lease, which has a result.
func (t *subscriber) gives(delivery uint64, ack *messages.Ack) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.running[delivery]
	if r != nil {
		r.ack = ack
	}
	return r != nil
}

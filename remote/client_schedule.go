package remote

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Schedule does what wakebell.Client.Schedule does. Many drafts are sent in
// several requests: after an error, some of them may be scheduled. Repeating the
// call is safe.
func (c *Client) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebelltype.Scheduled, error) {
	requests := make([]timerRequest, len(drafts))
	for i, d := range drafts {
		var err error
		if requests[i].ScheduleRequest, err = wakebell.ScheduleMessage(d); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
		requests[i].Encoded = len(c.cfg.edge.Middleware) > 0
	}
	var stored []wakebelltype.Scheduled
	err := outgoing.Each(ctx, c.cfg.edge, "schedule", requests, (*timerRequest).outgoing, (*timerRequest).apply,
		func(ctx context.Context, requests []timerRequest) (err error) {
			timers := make([]*messages.ScheduleRequest, len(requests))
			for i, r := range requests {
				timers[i] = r.ScheduleRequest
			}
			stored, err = c.schedule(ctx, timers)
			return err
		})
	return stored, err
}

// schedule sends the requests of one call.
func (c *Client) schedule(ctx context.Context, timers []*messages.ScheduleRequest) ([]wakebelltype.Scheduled, error) {
	span := c.cfg.edge.Tracer.Inject(ctx)
	if c.inSteps(timers) {
		return c.scheduleInSteps(ctx, timers, span)
	}
	if len(timers) == 1 {
		timers[0].Key, timers[0].Trace = keyOf(ctx), span
		answer, err := call[*messages.ScheduleResponse](ctx, c, timers[0])
		if err != nil {
			return nil, err
		}
		return []wakebelltype.Scheduled{scheduledOf(answer)}, nil
	}
	return c.inRequests(ctx, timers, span, 0)
}

// inRequests sends timers, before which others of the call were sent.
func (c *Client) inRequests(ctx context.Context, timers []*messages.ScheduleRequest, span map[string]string, before int) ([]wakebelltype.Scheduled, error) {
	done := make([]wakebelltype.Scheduled, 0, len(timers))
	for len(timers) > 0 {
		n := c.fitting(timers)
		request := &messages.ScheduleBatchRequest{Timers: timers[:n], Trace: span}
		if key := keyOf(ctx); key != "" {
			request.Key = fmt.Sprintf("%s#%d", key, before+len(done))
		}
		answer, err := call[*messages.ScheduleBatchResponse](ctx, c, request)
		if err != nil {
			return nil, err
		}
		for _, s := range answer.GetTimers() {
			done = append(done, scheduledOf(s))
		}
		timers = timers[n:]
	}
	return done, nil
}

const (
	// maxBatchTimers is how many timers the gateway accepts in one request.
	maxBatchTimers = 1000
	// timerValues is how many values a timer has at most that count towards wire.MaxParts,
	// without its headers and the parts of joins.
	timerValues = 16
)

// fitting returns how many of the timers fit into one request.
func (c *Client) fitting(timers []*messages.ScheduleRequest) int {
	size, values := wire.FrameOverhead, wire.FrameParts
	for i, t := range timers {
		size += len(t.GetBody()) + len(t.GetId()) + len(t.GetTopic()) + wire.EnvelopeOverhead
		for key, value := range t.GetHeaders() {
			size += len(key) + len(value) + wire.EnvelopeOverhead
		}
		bytes, parts := partsSize(t)
		size += bytes
		values += timerValues + 3*(len(t.GetHeaders())+parts)
		if i == maxBatchTimers || (i > 0 && (size > c.cfg.MaxMessage/2 || values > wire.MaxParts)) {
			return i
		}
	}
	return len(timers)
}

// The schedule middleware of a Client sees its requests before they leave the process.
// The node stores what it receives: its own middleware is for requests of its process.

// timerRequest is a timer that a Client schedules.
type timerRequest struct{ *messages.ScheduleRequest }

func (r *timerRequest) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingTimer, Topic: r.GetTopic(), ID: r.GetId(),
		Body: r.GetBody(), ContentType: r.GetContentType(), Headers: convert.HeaderList(r.GetHeaders()),
	}
}

func (r *timerRequest) apply(o *wakebelltype.Outgoing) {
	r.Body, r.ContentType, r.Headers = o.Body, o.ContentType, convert.HeaderMap(o.Headers)
}

// recurringRequest is a recurring schedule that a Client puts.
type recurringRequest struct{ *messages.Recurring }

func (r *recurringRequest) outgoing() *wakebelltype.Outgoing {
	if r.GetCelery() != nil {
		return nil
	}
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingRecurring, Topic: r.GetTopic(), ID: r.GetName(),
		Body: r.GetBody(), ContentType: r.GetContentType(), Headers: convert.HeaderList(r.GetWhen().GetHeaders()),
	}
}

func (r *recurringRequest) apply(o *wakebelltype.Outgoing) {
	r.Body, r.ContentType, r.When.Headers = o.Body, o.ContentType, convert.HeaderMap(o.Headers)
}

func messageOutgoing(d *queue.Draft) *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingMessage, Topic: d.Queue.Keys.Name, Body: d.Payload, Headers: d.Headers}
}

func messageApply(d *queue.Draft, o *wakebelltype.Outgoing) { d.Payload, d.Headers = o.Body, o.Headers }

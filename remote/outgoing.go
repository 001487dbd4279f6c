package remote

import (
	"github.com/wakebell/wakebell/internal/gatewayconv"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The schedule middleware of a Client sees its requests before they leave the process.
// The node stores what it receives: its own middleware is for requests of its process.

// timerRequest is a timer that a Client schedules.
type timerRequest struct{ *messages.ScheduleRequest }

func (r *timerRequest) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingTimer, Topic: r.GetTopic(), ID: r.GetId(),
		Body: r.GetBody(), ContentType: r.GetContentType(), Headers: gatewayconv.HeaderList(r.GetHeaders()),
	}
}

func (r *timerRequest) apply(o *wakebelltype.Outgoing) {
	r.Body, r.ContentType, r.Headers = o.Body, o.ContentType, gatewayconv.HeaderMap(o.Headers)
}

// recurringRequest is a recurring schedule that a Client puts.
type recurringRequest struct{ *messages.Recurring }

func (r *recurringRequest) outgoing() *wakebelltype.Outgoing {
	if r.GetCelery() != nil {
		return nil
	}
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingRecurring, Topic: r.GetTopic(), ID: r.GetName(),
		Body: r.GetBody(), ContentType: r.GetContentType(), Headers: gatewayconv.HeaderList(r.GetWhen().GetHeaders()),
	}
}

func (r *recurringRequest) apply(o *wakebelltype.Outgoing) {
	r.Body, r.ContentType, r.When.Headers = o.Body, o.ContentType, gatewayconv.HeaderMap(o.Headers)
}

func messageOutgoing(d *queue.Draft) *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingMessage, Topic: d.Queue.Keys.Name, Body: d.Payload, Headers: d.Headers}
}

func messageApply(d *queue.Draft, o *wakebelltype.Outgoing) { d.Payload, d.Headers = o.Body, o.Headers }

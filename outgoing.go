package wakebell

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// send stores drafts in a span and through the schedule middleware. A nil key is none.
func (c *Client) send(ctx context.Context, key *timers.Key, drafts []Draft) (stored []wakebelltype.Scheduled, err error) {
	for i := range drafts {
		if err := drafts[i].err; err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
	}
	err = outgoing.Each(ctx, c.edge, "schedule", drafts, (*Draft).outgoing, (*Draft).apply, func(ctx context.Context, drafts []Draft) error {
		b, err := c.batch(drafts)
		if err != nil {
			return err
		}
		stored, err = c.store.Write(ctx, key, b)
		return err
	})
	return stored, err
}

// outgoing returns the draft as the schedule middleware sees it.
func (d *Draft) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingTimer, Topic: d.topic, ID: d.id,
		Body: d.env.Body, ContentType: d.env.ContentType, Headers: d.env.Headers,
	}
}

// apply sets what the schedule middleware may change.
func (d *Draft) apply(o *wakebelltype.Outgoing) {
	d.env.Body, d.env.ContentType, d.env.Headers = o.Body, o.ContentType, o.Headers
}

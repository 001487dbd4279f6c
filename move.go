package wakebell

import (
	"context"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Reschedule gives a timer a new instant, by In or At, and keeps its body. The
// result counts as a new timer: its attempts are counted from 0, and a running
// handler is superseded, so that the timer is delivered again at the new instant.
// The Outcome is Moved or Superseded. Errors include ErrNotFound.
func (c *Client) Reschedule(ctx context.Context, topic, id string, when ScheduleOption) (wakebelltype.Scheduled, error) {
	var d Draft
	if when == nil {
		return wakebelltype.Scheduled{}, invalid("when", "nil")
	}
	if err := when(&d); err != nil {
		return wakebelltype.Scheduled{}, err
	}
	if !d.planned || d.policy != wakebelltype.PolicyReplace {
		return wakebelltype.Scheduled{}, invalid("when", "want In or At")
	}
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	s, err := c.store.Reschedule(ctx, full, id, d.at, d.in)
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	return s, nil
}

// RunNow makes a timer due now, and returns the state in which it found it:
// Pending or Running. A timer that waits for its next attempt keeps its Activation
// and its attempts; a timer that was not delivered yet gets the present as its
// Activation. A timer that is due or running is not changed. Errors include
// ErrNotFound.
func (c *Client) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.PresenceAbsent, err
	}
	return c.store.RunNow(ctx, full, id)
}

// Reschedule gives a timer of the topic a new instant; see Client.Reschedule.
func (t Topic[T]) Reschedule(ctx context.Context, c TimerClient, id string, when ScheduleOption) (wakebelltype.Scheduled, error) {
	if c == nil {
		return wakebelltype.Scheduled{}, invalid("client", "nil")
	}
	return c.Reschedule(ctx, t.name, id, when)
}

// RunNow makes a timer of the topic due now; see Client.RunNow.
func (t Topic[T]) RunNow(ctx context.Context, c TimerClient, id string) (wakebelltype.Presence, error) {
	if c == nil {
		return wakebelltype.PresenceAbsent, invalid("client", "nil")
	}
	return c.RunNow(ctx, t.name, id)
}

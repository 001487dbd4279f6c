// Package expiry ends timers that could begin only too late, before a handler receives them.
//
// A timer begins once: one that has failed, crashed or was snoozed has begun at its first
// delivery, and does not expire. So the instant that counts is the one of its lease, and the
// script that claims timers has no case for it: the lease says of a snooze, which takes its
// attempt back.
package expiry

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Topic ends the expired timers of a physical topic.
type Topic struct {
	wakebelltype.Expiry

	// Send schedules a timer on the topic of Expiry, due at once.
	Send func(ctx context.Context, d *poller.Delivery, env envelope.Envelope, reason string) error
	// Discard deletes the body of a timer from the store of a claim check, if it is there, after
	// settle has ended the timer.
	Discard func(ctx context.Context, d *poller.Delivery, env envelope.Envelope, settle func() error)
}

// Check checks the options of a handler.
func Check(e wakebelltype.Expiry) error {
	switch {
	case e.After != 0 && (e.After < wakebelltype.MinExpiry || e.After > wakebelltype.MaxExpiry):
		return argument.Invalid("Expiry.After", "%v, want 0 or %v to %v", e.After, wakebelltype.MinExpiry, wakebelltype.MaxExpiry)
	case e.DeadLetter && e.Topic != "":
		return argument.Invalid("Expiry", "DeadLetter and Topic %q are mutually exclusive; use one", e.Topic)
	}
	return nil
}

// Limit returns the limit of a timer with these headers; 0: none. What it has itself wins.
func (t *Topic) Limit(headers []envelope.Header) time.Duration {
	for i := range headers {
		if headers[i].Key != wakebelltype.ExpiryHeader {
			continue
		}
		if d, err := time.ParseDuration(headers[i].Value); err == nil && d >= wakebelltype.MinExpiry && d <= wakebelltype.MaxExpiry {
			return d
		}
	}
	return t.After
}

// Ended ends a delivery whose timer has expired, and returns its outcome; false: it has not,
// and a handler may begin. t may be nil: then no timer expires. Note is called before the
// timer is settled; after an error the timer is delivered again.
func (t *Topic) Ended(ctx context.Context, d *poller.Delivery, env envelope.Envelope, note func(poller.Outcome) error) (o poller.Outcome, ended bool) {
	if t == nil || d.Claims > 1 || d.Failures > 0 || d.Snoozed {
		return o, false
	}
	limit := t.Limit(env.Headers)
	if limit == 0 {
		return o, false
	}
	late := d.LateAt(time.Now())
	if late <= limit {
		return o, false
	}
	return t.end(ctx, d, env, fmt.Sprintf("expired: it could begin %v after its instant, limit %v", rounded(late), limit), note), true
}

func (t *Topic) end(ctx context.Context, d *poller.Delivery, env envelope.Envelope, reason string, note func(poller.Outcome) error) poller.Outcome {
	if err := note(poller.Expired(reason, t.DeadLetter)); err != nil {
		return poller.Released()
	}
	if t.DeadLetter {
		return poller.Expired(reason, true)
	}
	if t.Topic != "" {
		switch err := t.Send(ctx, d, env, reason); {
		case ctx.Err() != nil:
			return poller.Outcome{Kind: leasing.Skipped}
		case err != nil: // not repeated: it may never succeed
			return poller.Expired(fmt.Sprintf("%s; not sent to topic %q: %v", reason, t.Topic, err), true)
		}
	}
	o := poller.Expired(reason, false)
	t.Discard(ctx, d, env, func() error { return d.Settle(ctx, o) })
	return o
}

// rounded leaves the digits of a lateness that matter.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

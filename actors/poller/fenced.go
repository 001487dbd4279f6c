package poller

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// heldNow is the message of a handler's goroutine that asks for the token of its lease. Its
// answer has room for one.
type heldNow struct {
	lease   *lease
	answer  chan<- held
	outcome bool // the token is for an outcome: it does not matter that the context has ended
}

// held is the present token of a lease, or why its handler lost it.
type held struct {
	token exchange.Token
	err   error
}

// fencedTries bounds the calls of Fenced. An extension between the token and the call, which
// makes another one necessary, comes once in a third of LeaseTTL.
const fencedTries = 4

// Fenced makes a call that writes something with the token of the lease. Call reports whether
// the store still knew the token; if it did not, the poller finds out why, and call is made
// again if the lease was only extended meanwhile. Errors are those of Settle and of call.
func (d *Delivery) Fenced(ctx context.Context, call func(exchange.Token) (known bool, err error)) error {
	return d.fenced(ctx, false, call)
}

// FencedOutcome is Fenced for what an outcome writes before it is settled. The context of the
// handler may have ended, as in a drain. After an error that is none of call, either the outcome
// does not count (ErrSuperseded, ErrCancelled, ErrSettled) or it must not be settled.
func (d *Delivery) FencedOutcome(ctx context.Context, call func(exchange.Token) (known bool, err error)) error {
	return d.fenced(ctx, true, call)
}

func (d *Delivery) fenced(ctx context.Context, outcome bool, call func(exchange.Token) (known bool, err error)) error {
	for range fencedTries {
		token, err := d.token(ctx, outcome)
		if err != nil {
			return err
		}
		if known, err := call(token); known || err != nil {
			return err
		}
		if err := d.Extend(ctx); err != nil {
			return err
		}
	}
	return ErrLeaseLost
}

// token asks the poller for the present token of the lease.
func (d *Delivery) token(ctx context.Context, outcome bool) (exchange.Token, error) {
	answer := make(chan held, 1)
	d.lease.queue.toPoller(heldNow{d.lease, answer, outcome})
	select {
	case h := <-answer:
		return h.token, h.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-d.lease.queue.ctx.Done():
		return "", ErrStopped
	}
}

// heldNow answers a request for a token. Nothing has changed then.
func (p *poller) heldNow(m heldNow) (changed bool) {
	ask := p.core.Held
	if m.outcome {
		ask = p.core.Concludes
	}
	token, err := ask(&m.lease.core)
	m.answer <- held{token, err}
	return false
}

// replaced is the message of a handler's goroutine that has stored another payload.
type replaced struct {
	lease   *lease
	payload []byte
}

// Replaced notes that the timer has another payload, which its dead letter has. It must not be
// modified.
func (d *Delivery) Replaced(payload []byte) { d.lease.queue.toPoller(replaced{d.lease, payload}) }

// note notes the payload. Nothing else has changed then.
func (m replaced) note() (changed bool) {
	m.lease.core.Replacement = m.payload
	return false
}

func (m settleNow) of() *runQueue { return m.lease.queue }
func (m extendNow) of() *runQueue { return m.lease.queue }
func (m heldNow) of() *runQueue   { return m.lease.queue }
func (m replaced) of() *runQueue  { return m.lease.queue }

// Attachment returns Topic.Attachment.
func (d *Delivery) Attachment() any { return d.lease.queue.attachment }

// Kept returns what Keep has kept with the delivery; nil: nothing.
func (d *Delivery) Kept() any {
	if kept := d.lease.kept.Load(); kept != nil {
		return *kept
	}
	return nil
}

// Keep returns what is kept with the delivery: what create returned in the first call.
func (d *Delivery) Keep(create func() any) any {
	if kept := d.Kept(); kept != nil {
		return kept
	}
	made := create()
	d.lease.kept.CompareAndSwap(nil, &made)
	return d.Kept()
}

// Watched reports whether an event of the topic would reach a client.
func (d *Delivery) Watched() bool { return d.lease.queue.feed.Watched.Load() }

// Emit adds an event of the timer for the clients that watch its topic, while its handler has
// not returned: so it comes between those of the delivery and its settlement. Its instant is the
// present.
func (d *Delivery) Emit(e wakebelltype.Event) {
	e.At, e.ID, e.Attempt = d.Claimed.Add(d.Waited(time.Now())), d.ID, d.Claims
	d.lease.queue.feed.Add(e)
}

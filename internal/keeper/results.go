package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/wakebelltype"
)

// progressEvery is the least time between two writes of the progress of a timer.
const progressEvery = time.Second

// Progress stores how far the handler is, at most once in progressEvery: Finish stores the
// last one otherwise. A fraction that is not within 0 and 1 is refused with
// [wakebelltype.ErrInvalid]. Other errors are those of [poller.Delivery.Fenced] and of the
// store.
func (d *Delivery) Progress(ctx context.Context, fraction float64, note string) error {
	if !(fraction >= 0 && fraction <= 1) {
		return argument.Invalid("progress", "%v is not within 0 and 1", fraction)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = wakebelltype.Progress{Fraction: fraction, Note: text.Cut(text.Valid(note), progress.MaxNote), Attempt: d.of.Claims}
	if d.unsaved = true; !d.reported.IsZero() && time.Since(d.reported) < progressEvery {
		return nil
	}
	return d.report(ctx)
}

// report writes the progress. mu is held.
func (d *Delivery) report(ctx context.Context) error {
	d.reported = time.Now()
	err := d.of.Fenced(ctx, func(token exchange.Token) (bool, error) {
		return d.Store.KeepProgress(ctx, d.Physical, d.of.ID, token, d.progress, d.Life)
	})
	d.unsaved = err != nil
	return err
}

// Result stores the result of the delivery, whose body passes the schedule middleware as that
// of a timer. It counts if the delivery is acknowledged, see Finish. Errors are those of
// Checkpoint.
func (d *Delivery) Result(ctx context.Context, env envelope.Envelope) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.encoded(ctx, env, d.keepResult)
}

// KeepResult is Result for a body that is encoded already.
func (d *Delivery) KeepResult(ctx context.Context, env envelope.Envelope) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keepResult(ctx, env)
}

func (d *Delivery) keepResult(ctx context.Context, env envelope.Envelope) error {
	payload, err := envelope.Encode(env)
	switch {
	case err != nil:
		return fmt.Errorf("%w: result: %w", wakebelltype.ErrInvalid, err)
	case len(payload) > progress.MaxResult:
		return argument.Invalid("result", "%d bytes with its headers, the limit is %d; Payloads with a ClaimCheck stores larger ones", len(payload), progress.MaxResult)
	}
	r := progress.Result{Attempt: d.of.Claims, Activation: d.of.Activation, Payload: payload}
	err = d.of.Fenced(ctx, func(token exchange.Token) (bool, error) {
		held, err := d.Store.KeepResult(ctx, d.Physical, d.of.ID, token, r, d.Life)
		if held || err != nil { // after an error it may be stored
			d.token, d.result = token, &r
		}
		return held, err
	})
	if err == nil {
		d.results.Store(true)
	}
	return err
}

// written returns the result that the delivery has written; nil: none.
func (d *Delivery) written() *progress.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.token == "" {
		return nil
	}
	return d.result
}

// Settled notes that the handler has settled the delivery itself, after Finish. What becomes of
// the handler does not matter then.
func Settled(of *poller.Delivery) {
	if d, ok := of.Kept().(*Delivery); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.settled = true
	}
}

// Finish is called with the outcome of a delivery before it is settled. It writes the last
// progress, and removes a result that does not belong to the outcome: that of this run, if it
// is no success, and that of an earlier one whose node crashed, if this run has none.
func Finish(ctx context.Context, of *poller.Delivery, outcome poller.Outcome) {
	if d, ok := of.Kept().(*Delivery); ok {
		d.finish(ctx, outcome == poller.Succeeded())
		return
	}
	if t, ok := of.Attachment().(*Topic); ok && t.mayHave(of) {
		(&Delivery{Topic: t, of: of}).drop(ctx)
	}
}

func (d *Delivery) finish(ctx context.Context, succeeded bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.settled {
		return
	}
	if d.unsaved {
		if err := d.report(ctx); err != nil {
			d.Logger.DebugContext(ctx, "the last progress was not stored", "topic", d.of.Topic, "id", d.of.ID, "err", err)
		}
	}
	switch {
	case d.token != "" && !succeeded:
		d.withdraw(ctx)
	case d.token == "" && d.mayHave(d.of):
		d.drop(ctx)
	}
}

// drop removes the result of an earlier run.
func (d *Delivery) drop(ctx context.Context) {
	err := d.of.Fenced(ctx, func(token exchange.Token) (bool, error) {
		return d.Store.DropResult(ctx, d.Physical, d.of.ID, token)
	})
	if err != nil {
		d.Logger.DebugContext(ctx, "the result of an earlier attempt was not removed", "topic", d.of.Topic, "id", d.of.ID, "err", err)
	}
}

// withdrawTimeout bounds the removal of a result, which outlives its delivery.
const withdrawTimeout = 10 * time.Second

// Unfinished implements the hook of package poller: the handler crashed, or its ack was refused.
func (d *Delivery) Unfinished() {
	//nolint:forbidigo // the delivery is over
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.token != "" && !d.settled {
		d.withdraw(ctx)
	}
}

func (d *Delivery) withdraw(ctx context.Context) {
	if err := d.Store.Withdraw(context.WithoutCancel(ctx), d.Physical, d.of.ID, d.token); err != nil {
		d.Logger.WarnContext(ctx, "the result of a run that was not acknowledged stays until it expires", "topic", d.of.Topic, "id", d.of.ID, "err", err)
		return
	}
	d.token = ""
}

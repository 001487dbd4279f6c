// Package keeper writes what handlers keep while they run, each write fenced by the token of
// the handler's lease: checkpoints, progress and results.
package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Topic is what a node has for the handlers of one physical topic: poller.Topic.Attachment.
type Topic struct {
	Store    *progress.Store
	Joins    *joins.Store
	Physical string // the topic in Redis
	Name     string // the topic without prefix, as codecs know it
	Prefix   string
	Edge     *outgoing.Edge // the schedule middleware; it encodes bodies
	Payloads *payload.Chain // nil: bodies are not encoded
	Limit    int            // bytes of a payload
	Life     time.Duration  // how long progress and results stay
	Logger   *slog.Logger

	Results bool // all handlers return results

	results atomic.Bool // a handler has given a result
}

// mayHave reports whether an earlier run of a timer may have left a result.
func (t *Topic) mayHave(of *poller.Delivery) bool {
	return of.Claims > 1 && (t.Results || t.results.Load())
}

// Delivery is what one delivery keeps. It is safe for concurrent use.
type Delivery struct {
	*Topic
	of *poller.Delivery

	mu     sync.Mutex        // held during writes, so that they keep their order
	stored envelope.Envelope // the last checkpoint as it is stored
	marked bool              // there is one

	progress wakebelltype.Progress // as reported last
	reported time.Time             // when one was written last
	unsaved  bool                  // the last one was not written

	settled bool // by its handler, which continues: what it has kept stays

	token  exchange.Token   // with which a result was written; empty: there is none
	result *progress.Result // that result
}

// Of returns what a delivery keeps. The error wraps [wakebelltype.ErrInvalid] for a
// message of a queue.
func Of(d *poller.Delivery) (*Delivery, error) {
	topic, ok := d.Attachment().(*Topic)
	if !ok {
		return nil, argument.Invalid("timer", "messages of queues have no checkpoints, progress and results")
	}
	return d.Keep(func() any { return &Delivery{Topic: topic, of: d} }).(*Delivery), nil
}

// Checkpoint replaces the timer's body and headers, which are encoded as those of a client.
// Errors are those of [poller.Delivery.Fenced], of the store, and of the middleware; they
// wrap [wakebelltype.ErrInvalid] if the payload is too large.
func (d *Delivery) Checkpoint(ctx context.Context, env envelope.Envelope) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.encoded(ctx, env, func(ctx context.Context, env envelope.Envelope) error {
		return d.replace(ctx, env)
	})
}

// encoded calls store with an envelope whose body went through the schedule middleware.
func (d *Delivery) encoded(ctx context.Context, env envelope.Envelope, store func(context.Context, envelope.Envelope) error) error {
	out := &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingTimer, Topic: d.Name, ID: d.of.ID, Headers: payload.Unmark(env.Headers), Body: env.Body, ContentType: env.ContentType,
	}
	edge := *d.Edge
	edge.Tracer = nil // the timer keeps the span that scheduled it
	return edge.Send(ctx, "checkpoint", []*wakebelltype.Outgoing{out}, func(ctx context.Context, out []*wakebelltype.Outgoing) error {
		env.Body, env.ContentType, env.Headers = out[0].Body, out[0].ContentType, out[0].Headers
		return store(ctx, env)
	})
}

// Replace is Checkpoint for a body that is encoded already.
func (d *Delivery) Replace(ctx context.Context, env envelope.Envelope) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.replace(ctx, env)
}

func (d *Delivery) replace(ctx context.Context, env envelope.Envelope) error {
	text, err := envelope.Encode(env)
	switch {
	case err != nil:
		return fmt.Errorf("%w: checkpoint: %w", wakebelltype.ErrInvalid, err)
	case len(text) > d.Limit:
		return argument.Invalid("checkpoint", "%d bytes with its headers, the limit is %d", len(text), d.Limit)
	}
	err = d.of.Fenced(ctx, func(token exchange.Token) (bool, error) {
		return d.Store.Checkpoint(ctx, d.Physical, d.of.ID, token, text)
	})
	if err != nil {
		return err
	}
	d.of.Replaced(text)
	before := d.stored
	if !d.marked {
		before, _ = envelope.Decode(d.of.Payload) // it was decoded before
	}
	d.stored, d.marked = env, true
	d.discard(ctx, before)
	return nil
}

// discardTimeout bounds the deletion of a body from the store of a payload.ClaimCheck.
const discardTimeout = 10 * time.Second

// discard deletes the body of an envelope that Redis does not have any more from the store of
// a claim check.
func (d *Delivery) discard(ctx context.Context, env envelope.Envelope) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	err := usercode.Called("deleting the body", func() error { return d.reference(env).Discard(ctx) })
	if err != nil {
		d.Logger.WarnContext(ctx, "a body was not deleted from its store", "topic", d.of.Topic, "id", d.of.ID, "err", err)
	}
}

func (d *Delivery) reference(env envelope.Envelope) payload.Decoded {
	return d.Payloads.Reference(payload.Encoded{
		Kind: wakebelltype.OutgoingTimer, Topic: d.Name, ID: d.of.ID, Headers: env.Headers, Body: env.Body, ContentType: env.ContentType,
	})
}

// Replaced returns what the last checkpoint of a delivery has left in the store of a claim
// check; false: the delivery made none.
func Replaced(of *poller.Delivery) (reference payload.Decoded, found bool) {
	d, ok := of.Kept().(*Delivery)
	if !ok {
		return reference, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.marked {
		return reference, false
	}
	return d.reference(d.stored), true
}

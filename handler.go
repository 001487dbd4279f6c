package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Timer is what the handler of a topic receives.
type Timer[T any] struct {
	Body T
	Meta
}

// Meta holds the fields of a timer besides its decoded body.
type Meta struct {
	ID    string
	Topic string // with its prefix

	// Activation is the instant for which the timer was scheduled; retries do
	// not change it.
	Activation time.Time
	// Delivered is the instant of this delivery's claim, by Redis's clock.
	Delivered time.Time
	// Attempt counts deliveries from 1, including those that crashed.
	Attempt int
	// Failures counts the deliveries that ended in an error.
	Failures int

	CorrelationID string // default: the id of the timer
	ContentType   string // of the body; may be empty
	ReplyTo       string
	Headers       Headers

	// Raw is the encoded body before any middleware. It must not be modified.
	Raw []byte

	delivery holder // nil in a Timer that was not delivered
	frame    bool   // the body is that of a message as it is stored: it may have the mark of package payload
}

// Lateness returns the time between Activation and Delivered.
func (m Meta) Lateness() time.Duration { return m.Delivered.Sub(m.Activation) }

// Settle settles the timer before the handler returns, as returning err would: a
// nil err acknowledges it. Use it if the handler has more to do that must not
// cause a redelivery. Settle returns when Redis has confirmed the settlement; the
// error that the handler returns later is ignored.
//
// Errors are ErrSettled if the timer was settled before; ErrSuperseded,
// ErrCancelled or ErrLeaseLost if the handler no longer holds the timer; and the
// error of ctx, which ends the wait but not the settlement.
func (m Meta) Settle(ctx context.Context, err error) error {
	if m.delivery == nil {
		return errNoDelivery
	}
	return m.delivery.Settle(ctx, err)
}

// Extend extends the lease and returns when Redis has confirmed it. The System
// extends leases automatically; call Extend before a step that must not run twice,
// to verify that the handler still holds the timer. Errors are those of Settle.
func (m Meta) Extend(ctx context.Context) error {
	if m.delivery == nil {
		return errNoDelivery
	}
	return m.delivery.Extend(ctx)
}

// Checkpoint replaces the body of the timer while its handler runs, so that a later attempt
// resumes from it: after an error, a crash, or the end of this node. It returns when Redis
// has stored the body, of up to the PayloadLimit, which passes ScheduleMiddleware and
// Payloads as one that is scheduled. Headers and instant stay, and Body and Raw of this
// Timer. The body is that of the timer from then on: a dead letter has it, and Reschedule
// keeps it. Of a recurring schedule, only this run has it.
//
// Errors are those of Settle, if the handler no longer holds the timer: nothing was written
// then. After ErrUnavailable the body may have been stored. Calls of one timer run one
// after the other.
func (t Timer[T]) Checkpoint(ctx context.Context, body T) error {
	if t.delivery == nil {
		return errNoDelivery
	}
	env, err := encoded(body, t.ContentType)
	if err != nil {
		return err
	}
	env.CorrelationID, env.ReplyTo, env.Headers = t.CorrelationID, t.ReplyTo, t.Headers
	return t.delivery.Checkpoint(ctx, env)
}

// Progress reports how far the handler is, 0 – 1, with a note of at most 256 bytes, of which
// more is cut off. Redis stores the first report at once, then at most one a second, and the
// last one when the handler returns, for KeepResults; Client.Report returns it. An error is
// one of Settle, or says that Redis could not store it; handlers may ignore it.
func (m Meta) Progress(ctx context.Context, fraction float64, note string) error {
	if m.delivery == nil {
		return errNoDelivery
	}
	return m.delivery.Progress(ctx, fraction, note)
}

// Result stores the result of the timer, as HandleResult does with what its function returns;
// use it in a batch or in middleware. The value is encoded by its type, as the body of a
// Topic[any]. A later call replaces it. Errors are those of Checkpoint.
func (m Meta) Result(ctx context.Context, value any) error {
	if m.delivery == nil {
		return errNoDelivery
	}
	env, err := encoded(value, "")
	if err != nil {
		return err
	}
	env.CorrelationID = m.CorrelationID
	return m.delivery.Result(ctx, env)
}

// HandleResult is Handle for a function that returns a result, which Client.Wait and
// Client.Report return for KeepResults after the timer has ended. A result has at most 4 KiB
// with its headers, after Payloads has encoded it; a payload.ClaimCheck stores larger ones.
// The timer of one that cannot be encoded, or is too large, is dead-lettered.
//
// The result is written before the ack, with the token of the lease. So a run that has lost
// its lease cannot write one; a run that does not end with an ack, or whose ack is refused,
// removes its own; and a later run replaces or removes what an earlier one has left whose
// node crashed between the two. If Redis does not store the result, the run has failed and is
// repeated. All handlers of a topic should return results: that of a run whose node crashed
// after it was written stays until it expires if another kind of handler ends the timer, or if
// the timer is cancelled, or dead-lettered without another run.
func HandleResult[T, R any](topic Topic[T], fn func(context.Context, Timer[T]) (R, error), opts ...HandlerOption) Handler {
	h := newHandler(topic.name, typed(topic.codec, func(ctx context.Context, t Timer[T]) error {
		result, err := fn(ctx, t)
		if err != nil {
			return err
		}
		return givesResult(t.Result(ctx, result))
	}), opts)
	h.set.results = true
	if fn == nil {
		h.err = errors.Join(h.err, argument.Invalid("handler", "nil"))
	}
	return h
}

// givesResult returns the verdict on a timer whose result was stored, or could not be.
func givesResult(err error) error {
	if errors.Is(err, ErrInvalid) {
		return Reject(err)
	}
	return err
}

// KeepResults sets how long Redis keeps progress and result of a timer after they were last
// written, 1 s – 24 h; default 1 h.
func KeepResults(d time.Duration) HandlerOption {
	return topicOption(func(s *settings) error {
		s.keepResults = d
		return within("KeepResults", d, time.Second, 24*time.Hour)
	})
}

const defaultKeepResults = time.Hour

// encoded encodes a value as the body of a timer. A type that has no content type gets the
// default.
func encoded[T any](body T, contentType string) (env envelope.Envelope, err error) {
	raw, own, err := codec.For[T]().Encode(body)
	if err != nil {
		return env, fmt.Errorf("%w: body: %w", ErrInvalid, err)
	}
	return envelope.Envelope{Body: raw, ContentType: cmp.Or(own, contentType)}, nil
}

// Context returns the context of this delivery. It is cancelled when the handler no
// longer holds the timer; context.Cause returns the reason, for instance ErrCancelled or
// ErrLeaseLost. In a batch it belongs to this timer alone; with Handle it ends together
// with the context of the call. Of a timer that was not delivered, it never ends.
func (m Meta) Context() context.Context {
	if m.delivery == nil {
		return context.Background() //nolint:forbidigo // like that of an http.Request
	}
	return m.delivery.Context()
}

var errNoDelivery = fmt.Errorf("%w: timer: it was not delivered by a System", ErrInvalid)

// Headers are the headers of a timer in their order, without those that have a
// field in Meta.
type Headers []envelope.Header

// Get returns the value of a header and whether it is set.
func (h Headers) Get(key string) (value string, ok bool) {
	i := slices.IndexFunc(h, func(e envelope.Header) bool { return e.Key == key })
	if i < 0 {
		return "", false
	}
	return h[i].Value, true
}

// Map returns the headers as a new map.
func (h Headers) Map() map[string]string {
	m := make(map[string]string, len(h))
	for _, e := range h {
		m[e.Key] = e.Value
	}
	return m
}

// with returns a copy with more headers, sorted, which replace those of the same name.
func (h Headers) with(more map[string]string) Headers {
	all := slices.DeleteFunc(slices.Clone(h), func(e envelope.Header) bool { _, replaced := more[e.Key]; return replaced })
	return append(all, convert.HeaderList(more)...)
}

// Handler connects a topic or a queue to a function or an actor. Handle, HandleBatch,
// Forward, HandleQueue, HandleQueueBatch and ForwardQueue return Handlers.
type Handler struct {
	topic string
	fn    HandlerFunc
	batch batchFunc // instead of fn; nil: timers are handled one by one
	set   settings
	err   error

	// read decodes the payload of a delivery; nil stands for envelope.Decode.
	read func(d *poller.Delivery) (envelope.Envelope, error)
}

// Handle returns a Handler that calls fn for each due timer of a topic, in up to
// MaxConcurrent goroutines at once. The error of fn is its verdict:
//
//	nil          ack: the timer is deleted
//	Reject(err)  reject: the timer is dead-lettered
//	RetryIn(d)   nack: the timer is retried after d
//	Snooze(d)    the timer is delivered again after d; no failure
//	any error    nack: the timer is retried after the topic's backoff
//
// A panic is logged and counts as a failure; the timer is delivered again when its
// lease expires, or becomes a dead letter at MaxAttempts. A timer whose body cannot be decoded into a T is dead-lettered without a call of
// fn. The context is cancelled when fn no longer holds the timer; context.Cause
// returns the reason. A timer may be delivered more than once, so fn should be
// idempotent.
func Handle[T any](topic Topic[T], fn func(context.Context, Timer[T]) error, opts ...HandlerOption) Handler {
	h := newHandler(topic.name, typed(topic.codec, fn), opts)
	if fn == nil {
		h.err = errors.Join(h.err, argument.Invalid("handler", "nil"))
	}
	return h
}

func newHandler(topic string, fn HandlerFunc, opts []HandlerOption) Handler {
	h := Handler{topic: topic, fn: fn, set: defaultSettings()}
	h.err = applyAll(&h.set, opts, HandlerOption.applyTopic)
	return h
}

// holder carries out the methods of a Timer.
type holder = testhook.Holder

// delivered is the holder of a timer that a System delivered.
type delivered struct {
	*poller.Delivery
	span   *deliverySpan // nil: the delivery is not traced
	part   *keeper.Part  // nil: no join waits for it
	lapses bool          // with RetryOnLeaseExpiry
}

// polled returns the delivery of the poller.
func (d delivered) polled() *poller.Delivery { return d.Delivery }

func (d delivered) Checkpoint(ctx context.Context, env envelope.Envelope) error {
	k, err := keeper.Of(d.Delivery)
	if err != nil {
		return err
	}
	return k.Checkpoint(ctx, env)
}

func (d delivered) Progress(ctx context.Context, fraction float64, note string) error {
	k, err := keeper.Of(d.Delivery)
	if err != nil {
		return err
	}
	return k.Progress(ctx, fraction, note)
}

func (d delivered) Result(ctx context.Context, env envelope.Envelope) error {
	k, err := keeper.Of(d.Delivery)
	if err != nil {
		return err
	}
	return k.Result(ctx, env)
}

// ends notes an outcome at the joins of a part, see keeper.Part.Ended.
func (d delivered) ends(o poller.Outcome) error { return d.part.Ended(o, d.lapses) }

func (d delivered) Settle(ctx context.Context, err error) error {
	outcome := verdict(err)
	if d.Kept() != nil || d.Claims > 1 {
		keeper.Finish(ctx, d.Delivery, outcome)
	}
	if failed := d.ends(outcome); failed != nil {
		return failed
	}
	refused := d.Delivery.Settle(ctx, outcome)
	if refused == nil {
		keeper.Settled(d.Delivery)
	}
	if d.span != nil && refused == nil {
		d.span.settled.Store(&settlement{err})
	}
	return refused
}

// handedTo returns the Meta of the draft's first delivery, at its instant; h
// carries out its Settle and Extend.
func (d Draft) handedTo(h holder) (Meta, error) {
	entry, err := d.entry(DefaultPayloadLimit)
	if err == nil {
		b := timers.NewBatch("", 1)
		err = b.Add(d.topic, &entry)
	}
	if err != nil {
		return Meta{}, err
	}
	env, err := envelope.Decode(entry.Payload)
	if err != nil {
		return Meta{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	at := d.at
	if at.IsZero() {
		at = time.Now().Add(d.in)
	}
	m := meta(&poller.Delivery{
		Lease:   exchange.Lease{ID: d.id, Activation: at, Claims: 1},
		Topic:   d.topic,
		Claimed: at,
	}, env)
	m.delivery = h
	return m, nil
}

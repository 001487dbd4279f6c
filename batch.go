package wakebell

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages"
)

// HandleBatch returns a Handler that calls fn with up to BatchSize due timers of a topic
// at once, in up to MaxConcurrent goroutines. The error of fn is the verdict of Handle
// for all timers of the call; a BatchError has a verdict for each.
//
// A timer whose body cannot be decoded into a T is dead-lettered and left out. A panic of
// fn settles no timer of the call: they are delivered again when their leases expire. All
// leases are extended while fn runs. If one is lost or its timer is cancelled, the
// context of that timer ends (Timer.Context) and its verdict is dropped; the others are
// not affected. The context of the call ends when fn holds none of the timers any more,
// for instance when the drain's timeout has passed or the node stops.
//
// MaxConcurrent counts calls: a node holds up to MaxConcurrent × BatchSize timers, at
// most 10,000. MaxLeaseAge bounds a call, and ends all of its timers.
//
// Middleware wraps single timers, so it does not run around batches: BatchMiddleware does.
func HandleBatch[T any](topic Topic[T], fn func(context.Context, []Timer[T]) error, opts ...HandlerOption) Handler {
	h := newHandler(topic.name, nil, opts).inBatches(typedBatch(topic.codec, fn))
	if fn == nil {
		h.err = errors.Join(h.err, argument.Invalid("handler", "nil"))
	}
	return h
}

// BatchSize sets the largest number of timers of a batch, 1 – 1,000; default 100.
// Forward and ForwardQueue deliver batches only if it is set.
func BatchSize(n int) CommonOption {
	return commonOption(func(s *settings) error {
		s.batch.Size = n
		return within("BatchSize", n, 1, 1000)
	})
}

// BatchWait sets how long a due timer waits for others until it is handled in a batch
// that is not full, 0 – 1 h; default 0, which means that a batch has what is due. The
// wait is at most a third of LeaseTTL.
func BatchWait(d time.Duration) CommonOption {
	return commonOption(func(s *settings) error {
		s.batch.Wait = d
		return within("BatchWait", d, 0, time.Hour)
	})
}

// BatchError is the error of a batch handler with the verdicts of single timers, by
// their ID. A timer without an entry, or with a nil one, is acknowledged. If an entry has
// an ID that is not in the batch, the timers without one fail.
type BatchError map[string]error

// Error lists the first verdicts.
func (e BatchError) Error() string {
	const shown = 3
	var b strings.Builder
	fmt.Fprintf(&b, "%d timers of the batch failed", len(e))
	for i, id := range slices.Sorted(maps.Keys(e)) {
		if i == shown {
			b.WriteString(", …")
			break
		}
		fmt.Fprintf(&b, "%s %q: %v", [...]string{":", ","}[min(i, 1)], id, e[id])
	}
	return b.String()
}

// batchFunc handles timers with encoded bodies, and returns the verdict of each.
type batchFunc func(ctx context.Context, timers []Timer[[]byte]) []error

// defaultBatchSize is the default of HandleBatch: an exchange claims as many.
const defaultBatchSize = 100

// inBatches returns h with fn in place of its function.
func (h Handler) inBatches(fn batchFunc) Handler {
	if h.batch = fn; h.set.batch.Size == 0 {
		h.set.batch.Size = defaultBatchSize
	}
	return h
}

// typedBatch returns the batchFunc that decodes the bodies and calls fn.
func typedBatch[T any](c codec.Codec[T], fn func(context.Context, []Timer[T]) error) batchFunc {
	return func(ctx context.Context, raw []Timer[[]byte]) []error {
		errs := make([]error, len(raw))
		timers, at := make([]Timer[T], 0, len(raw)), make([]int, 0, len(raw))
		for i, t := range raw {
			body, err := decode(c, t)
			if err != nil {
				errs[i] = err
				continue
			}
			timers, at = append(timers, Timer[T]{Body: body, Meta: t.Meta}), append(at, i)
		}
		if len(timers) == 0 {
			return errs
		}
		err := fn(ctx, timers)
		if err == nil {
			return errs
		}
		verdictOf := verdictsOf(err, idsOf(timers))
		for _, i := range at {
			errs[i] = verdictOf(raw[i].ID)
		}
		return errs
	}
}

// idsOf returns the ids of timers.
func idsOf[T any](timers []Timer[T]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range timers {
			if !yield(t.ID) {
				return
			}
		}
	}
}

// verdictsOf returns the verdict by id that the error of a batch handler has for the
// timers with these ids.
func verdictsOf(err error, ids iter.Seq[string]) func(id string) error {
	err = usercode.Checked(err)
	each, ok := errors.AsType[BatchError](err)
	if !ok {
		return func(string) error { return err }
	}
	unknown := maps.Clone(each)
	for id := range ids {
		delete(unknown, id)
	}
	var others error
	if len(unknown) > 0 {
		others = fmt.Errorf("the BatchError has the id %q, which is not in the batch", slices.Min(slices.Collect(maps.Keys(unknown))))
	}
	return func(id string) error {
		if verdict, found := each[id]; found {
			return verdict
		}
		return others
	}
}

// inBatch is the holder of a timer in a batch.
type inBatch struct {
	delivered
	ctx context.Context // nil: that of the delivery
}

func (b *inBatch) Context() context.Context {
	if b.ctx != nil {
		return b.ctx
	}
	return b.delivered.Context()
}

// chainBatch is chain for a handler of batches; change returns fn with what may change
// bodies, and nil changes nothing.
func chainBatch(h served, change func(batchFunc) batchFunc, tracer *tracing.Consumer) poller.HandleBatch {
	fn, read := h.batch, h.reader()
	if change != nil {
		fn = change(fn)
	}
	return func(ctx context.Context, batch []*poller.Delivery) []poller.Outcome {
		outcomes := make([]poller.Outcome, len(batch))
		own, raw := make([]inBatch, len(batch)), rawTimers.Get().(*rawBatch)
		for i, d := range batch {
			env, err := read(d)
			if err != nil {
				outcomes[i] = poller.Undeliverable(err)
				continue
			}
			own[i].delivered = delivered{Delivery: d, part: keeper.PartOf(d, env.Headers), lapses: h.set.retryOnExpiry}
			if o, ended := h.expiry.Ended(d.Context(), d, env, own[i].ends); ended {
				outcomes[i] = o
				continue
			}
			keeper.Began(d, env.Headers)
			t := Timer[[]byte]{Body: env.Body, Meta: meta(d, env)}
			if change != nil { // it may be changed in place
				t.Body = slices.Clone(t.Body)
			}
			t.delivery, t.frame = &own[i], h.set.queue != nil
			raw.timers, raw.at = append(raw.timers, t), append(raw.at, i)
		}
		call := fn
		if tracer.On() {
			call = h.tracedBatch(tracer, fn)
		}
		if len(raw.timers) > 0 {
			for i, err := range call(ctx, raw.timers) {
				outcomes[raw.at[i]] = h.finished(ctx, own[raw.at[i]].delivered, err)
			}
		}
		raw.recycle() // not after a panic
		return outcomes
	}
}

// rawBatch has the timers of a call before they are decoded, and their places among its
// deliveries. The call does not keep it.
type rawBatch struct {
	timers []Timer[[]byte]
	at     []int
}

var rawTimers = sync.Pool{New: func() any { return new(rawBatch) }}

func (r *rawBatch) recycle() {
	clear(r.timers)
	r.timers, r.at = r.timers[:0], r.at[:0]
	rawTimers.Put(r)
}

// wrappedBatch returns fn in middleware.
func wrappedBatch(fn batchFunc, mw []BatchMiddleware) batchFunc {
	if len(mw) == 0 {
		return fn
	}
	wrapped := inner(fn)
	for _, wrap := range slices.Backward(mw) {
		wrapped = wrap(wrapped)
	}
	return func(ctx context.Context, timers []Timer[[]byte]) []error {
		errs := make([]error, len(timers))
		verdictOf := verdictsOf(wrapped(ctx, slices.Clone(timers)), idsOf(timers))
		for i, t := range timers {
			errs[i] = verdictOf(t.ID)
		}
		return errs
	}
}

// inner returns fn for middleware, which may call it with any timers.
func inner(fn batchFunc) BatchFunc {
	return func(ctx context.Context, timers []Timer[[]byte]) BatchError {
		verdicts := BatchError{}
		known := make([]Timer[[]byte], 0, len(timers))
		for _, t := range timers {
			if _, ok := t.delivery.(*inBatch); ok {
				known = append(known, t)
			} else {
				verdicts[t.ID] = errNoDelivery
			}
		}
		if len(known) == 0 {
			return verdicts
		}
		for i, err := range fn(ctx, known) {
			if err != nil {
				verdicts[known[i].ID] = err
			}
		}
		return verdicts
	}
}

// forwardBatch is the batchFunc of a topic with a Target.
func forwardBatch(_ context.Context, timers []Timer[[]byte]) []error {
	m := &messages.LeaseBatch{Topic: timers[0].Topic, Leases: make([]*messages.Lease, len(timers))}
	batch, keeps, errs := make([]*poller.Delivery, len(timers)), make([]poller.Keep, len(timers)), make([]error, len(timers))
	for i, t := range timers {
		b := t.delivery.(*inBatch) // chainBatch made it
		batch[i], keeps[i], m.Leases[i] = b.Delivery, b.keeping(t), lease(t, b.LeaseTTL)
		m.Leases[i].Trace = b.span.trace(t.Context())
	}
	for i, answer := range poller.ForwardBatch(batch, m, keeps) {
		errs[i] = outcome(timers[i], answer)
	}
	return errs
}

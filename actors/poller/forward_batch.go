package poller

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// errReplaced is the answer of leases whose worker was abandoned.
var errReplaced = errors.New("the worker was abandoned")

// ForwardBatch sends deliveries of one batch to the topic's target, which is an actor,
// and waits for the answer to each: an answer as of Delivery.Forward, or its error.
// The leases of m are in the order of the deliveries. They are extended only at the
// target's request. keeps are those of the deliveries.
func ForwardBatch(batch []*Delivery, m *messages.LeaseBatch, keeps []Keep) (answers []any) {
	w := batch[0].lease.worker.Load()
	f := &batchForwarding{
		message: m, keeps: keeps, leases: make([]*lease, len(batch)), index: make(map[uint64]int, len(batch)),
		answers: make([]any, len(batch)), left: len(batch), done: make(chan struct{}),
	}
	m.Delivery = newDeliveryNumber()
	ends := make([]func() bool, len(batch))
	for i, d := range batch {
		delivery := newDeliveryNumber()
		m.Leases[i].Delivery, f.leases[i], f.index[delivery] = delivery, d.lease, i
	}
	w.toHandler(f)
	draining := make(chan struct{}, 1) // a drain ends all leases at once
	for i, d := range batch {
		ctx, delivery := d.Context(), m.Leases[i].GetDelivery()
		ends[i] = context.AfterFunc(ctx, func() {
			cause := context.Cause(ctx)
			w.toHandler(leaseEnded{delivery, cause})
			if errors.Is(cause, ErrDraining) {
				select {
				case draining <- struct{}{}:
				default:
				}
			}
		})
	}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	var unheard <-chan time.Time
	for {
		select {
		case <-f.done:
			return f.answers
		case <-draining:
			if unheard == nil {
				unheard = time.After(drainAnswer)
			}
		case <-unheard:
			w.toHandler(leaseEnded{m.GetDelivery(), errUnheard})
		case <-w.queue.ctx.Done(): // the handler receives nothing more
			answers = make([]any, len(batch))
			for i := range answers {
				answers[i] = ErrStopped
			}
			return answers
		}
	}
}

// batchForwarding asks a handler to forward a batch. The handler owns it until done is
// closed. A nil batchForwarding awaits nothing.
type batchForwarding struct {
	message *messages.LeaseBatch
	leases  []*lease
	keeps   []Keep
	index   map[uint64]int // by delivery, of the leases without an answer
	answers []any
	left    int
	done    chan struct{} // closed when all have an answer
}

// forwardBatch sends a batch to the target; an earlier one is no longer awaited.
func (h *handler) forwardBatch(c actor.Context, f *batchForwarding) {
	h.batch.answerAll(errReplaced)
	h.batch = f
	if err := h.findTarget(c); err != nil {
		f.answerAll(err)
		return
	}
	c.Request(h.target, f.message)
}

// answer takes the answer to a lease, or to all that have none, and reports whether
// the delivery is of this batch.
func (f *batchForwarding) answer(delivery uint64, answer any) bool {
	if f == nil {
		return false
	}
	if delivery == f.message.GetDelivery() {
		f.answerAll(answer)
		return true
	}
	i, found := f.index[delivery]
	if found {
		delete(f.index, delivery)
		f.set(i, answer)
	}
	return found
}

// answerAll answers all leases that have no answer.
func (f *batchForwarding) answerAll(answer any) {
	if f == nil {
		return
	}
	for _, i := range f.index {
		f.set(i, answer)
	}
	clear(f.index)
}

// set takes an answer. While the lease waits for the answers to the others, heartbeats
// extend it.
func (f *batchForwarding) set(i int, answer any) {
	f.answers[i] = answer
	if f.left--; f.left == 0 {
		close(f.done)
		return
	}
	l := f.leases[i]
	l.answered.Store(true)
	if time.Until(l.deadline()) < l.LeaseTTL/2 { // the next look at the leases may be too late
		l.extend()
	}
}

// unanswered returns the message of a lease without an answer; nil if it has one.
func (f *batchForwarding) unanswered(delivery uint64) *messages.Lease {
	if f == nil {
		return nil
	}
	if i, found := f.index[delivery]; found {
		return f.message.GetLeases()[i]
	}
	return nil
}

// keepOf returns the Keep of a lease without an answer; nil if it has one.
func (f *batchForwarding) keepOf(delivery uint64) Keep {
	if f == nil {
		return nil
	}
	if i, found := f.index[delivery]; found {
		return f.keeps[i]
	}
	return nil
}

// leasesOf returns the leases without an answer that a delivery stands for.
func (f *batchForwarding) leasesOf(delivery uint64) (some []*lease) {
	if f == nil {
		return nil
	}
	for each, i := range f.index {
		if delivery == each || delivery == f.message.GetDelivery() {
			some = append(some, f.leases[i])
		}
	}
	return some
}

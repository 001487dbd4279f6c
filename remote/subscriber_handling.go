package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages"
)

// leases starts the handling of leases that arrived.
func (t *subscriber) leases(m *messages.Leases) {
	now := time.Now()
	sent := t.sentAt(m.GetClock(), now)
	for _, l := range m.GetLeases() {
		ctx, cancel := context.WithCancelCause(t.ctx)
		if !t.hold(l, sent.Add(l.GetTtl().AsDuration()), now, cancel) {
			cancel(nil)
			t.late(l)
			continue
		}
		t.begin(leaseJob{ctx, cancel, l})
	}
}

// late logs a lease that is not handled because it expired on the way. The node
// delivers the timer again.
func (t *subscriber) late(l *messages.Lease) {
	t.link.cfg.logger.Debug("a lease arrived after its end", "topic", t.of.Topic, "id", l.GetId(),
		"attempt", l.GetAttempt(), "activation", l.GetActivation().AsTime(), "delivered", l.GetDelivered().AsTime())
}

// leaseJob is a lease for one of a subscriber's goroutines.
type leaseJob struct {
	ctx    context.Context //nolint:containedctx // of this lease
	cancel context.CancelCauseFunc
	lease  *messages.Lease
}

// begin gives a lease to an idle goroutine, or to a new one.
func (t *subscriber) begin(next leaseJob) {
	select {
	case t.feed <- next:
		return
	default:
	}
	go func() {
		for {
			t.Serve(next.ctx, next.lease)
			next.cancel(nil)
			t.work.Done()
			select {
			case next = <-t.feed:
			case <-t.ctx.Done():
				return
			}
		}
	}()
}

// Serve handles one lease. A panic settles nothing: the timer is delivered again
// when its lease expires.
func (t *subscriber) Serve(ctx context.Context, l *messages.Lease) {
	defer func() {
		if reason := recover(); reason != nil {
			t.crash(l.GetDelivery())
			t.link.cfg.logger.Error("a subscriber's handler panicked", "topic", t.of.Topic, "id", l.GetId(), "panic", fmt.Sprint(reason))
		}
	}()
	err := t.open(ctx, l)
	if err == nil {
		err = usercode.Checked(t.run(ctx, l))
	}
	if t.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(t.ctx))) {
		err = wakebell.Release(err) // the end of the subscription has interrupted it
	}
	t.settle(l.GetDelivery(), verdictOf(l, err))
}

func (t *subscriber) crash(delivery uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lost, delivery)
	if r := t.running[delivery]; r != nil {
		t.crashed[delivery] = r.until
		delete(t.running, delivery)
	}
}

// settle queues the verdict of a handler that has returned, unless its lease was lost. In one
// step: unsubscribe finds the handler running, or its verdict.
func (t *subscriber) settle(delivery uint64, v *messages.Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.running[delivery]
	delete(t.running, delivery)
	delete(t.lost, delivery)
	if r == nil {
		return
	}
	if acked, ok := v.GetKind().(*messages.Verdict_Ack); ok && r.ack != nil {
		acked.Ack = r.ack
		if size := proto.Size(r.ack); size > t.maxVerdict() { // as the node says of a smaller one
			v.Kind = &messages.Verdict_Reject{Reject: &messages.Reject{Delivery: delivery, Reason: fmt.Sprintf("result: %d bytes, the limit is 4096", size)}}
		}
	}
	t.addVerdict(v)
}

func verdictOf(l *messages.Lease, err error) *messages.Verdict {
	v := &messages.Verdict{Id: l.GetId()}
	delay, retry := wakebell.RetryDelay(err)
	later, snoozed := wakebell.SnoozeDelay(err)
	switch {
	case err == nil:
		v.Kind = &messages.Verdict_Ack{Ack: l.Ack()}
	case wakebell.IsReleased(err):
		v.Kind = &messages.Verdict_Release{Release: l.Release()}
	case wakebell.IsRejected(err):
		v.Kind = &messages.Verdict_Reject{Reject: l.Reject(err)}
	case snoozed:
		n := l.NackIn(later, err)
		n.Snooze = true
		v.Kind = &messages.Verdict_Nack{Nack: n}
	case retry:
		v.Kind = &messages.Verdict_Nack{Nack: l.NackIn(delay, err)}
	default:
		v.Kind = &messages.Verdict_Nack{Nack: l.Nack(err)}
	}
	return v
}

// interrupt ends the context of a handler, whose verdict counts if it comes soon.
func (t *subscriber) interrupt(delivery uint64) {
	t.mu.Lock()
	r := t.running[delivery]
	t.mu.Unlock()
	if r != nil {
		r.cancel(wakebell.ErrDraining)
	}
}

func (t *subscriber) lose(delivery uint64, cause error) {
	t.mu.Lock()
	r := t.running[delivery]
	if delete(t.running, delivery); r != nil {
		t.lost[delivery] = struct{}{}
	}
	t.mu.Unlock()
	if r != nil {
		r.cancel(cause)
	}
}

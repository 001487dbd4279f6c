package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Subscription configures Client.Subscribe: the topic or queue, the subscriber's
// name and its credits. Exactly one of Topic and Queue is set.
type Subscription struct {
	Topic string // without the System's prefix

	// Queue has the Keys of a queue to subscribe to instead of a topic. Decode the
	// messages with queue.Queue.Read.
	Queue wakebelltype.QueueKeys

	// Name identifies the subscriber among those of the topic with the same
	// credentials, 1 to 256 bytes. Use the same name after a restart. A later
	// subscription with the same name replaces the earlier one, which gets no more
	// leases and keeps those that it has. After a crash these expire.
	Name string

	// Credits are how many timers are handled at once, 1 to 10,000. Default: 5.
	Credits int
}

// Subscribe calls handle for each timer of a topic or message of a queue, up to
// Credits at once, until ctx ends. The result of handle settles the lease as that of
// a wakebell.Handler does: nil acks, wakebell.Reject rejects, any other error nacks.
// The lease is extended while handle runs. If it is lost, the context of handle is
// cancelled with a cause such as wakebell.ErrLeaseLost or wakebell.ErrCancelled. A
// panic of handle is logged, and the timer is delivered again when its lease
// expires.
//
// When the link breaks, Subscribe subscribes again; timers whose leases have expired
// meanwhile are delivered again. If the right to handle the topic is withdrawn from a
// subscription, its leases are lost, which is logged as a warning, and Subscribe asks
// again every second until it has the right.
//
// When ctx ends or the Client is closed, no more timers arrive, the contexts of running calls of
// handle end, and their results count if they return within 1 s; the error of its context releases
// the lease. A call that goes on for longer has no result: its lease is not extended but expires, so
// that no other handler runs beside it before. All other leases are released at once.
//
// Subscribe returns nil when ctx has ended. Otherwise it returns why it cannot
// subscribe: wakebell.ErrInvalid; wakebell.ErrConflict if the node handles the topic
// itself; wakebell.ErrForbidden, at the first attempt; ErrDenied; or an error if the Client is closed.
func (c *Client) Subscribe(ctx context.Context, s Subscription, handle func(context.Context, *messages.Lease) error) error {
	if s.Credits == 0 {
		s.Credits = 5
	}
	if handle == nil {
		return argument.Invalid("handle", "nil")
	}
	if s.Queue.Name != "" {
		if s.Topic != "" {
			return argument.Invalid("Topic", "%q and Queue %q are both set, want one of them", s.Topic, s.Queue.Name)
		}
		s.Topic = s.Queue.Name
	}
	t := &subscriber{
		link: c.link, tracer: c.cfg.edge.Tracer.Consumer(), of: s, handle: handle, chain: c.cfg.chain,
		running: map[uint64]*runningLease{}, crashed: map[uint64]time.Time{}, lost: map[uint64]struct{}{},
		wake: make(chan struct{}, 1), failed: make(chan error, 1),
		feed: make(chan leaseJob), began: time.Now(), instance: rand.Text(),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := c.link.join(t); err != nil {
		return err
	}
	defer c.link.leave(t)
	var writing sync.WaitGroup
	stop := make(chan struct{})
	writing.Go(func() { t.write(stop) })
	t.subscribe()
	var err error
	select {
	case <-ctx.Done():
	case err = <-t.failed:
	case <-c.link.closing:
		err = errClosed
	}
	t.Stop(context.Cause(ctx))
	close(stop)
	writing.Wait()
	t.unsubscribe()
	return err
}

// subscriber is a running call of Client.Subscribe.
type subscriber struct {
	link   *clientLink
	tracer *tracing.Consumer
	of     Subscription
	handle func(context.Context, *messages.Lease) error
	chain  *payload.Chain
	ctx    context.Context //nolint:containedctx // of all its handlers
	cancel context.CancelCauseFunc
	failed chan error
	feed   chan leaseJob
	work   sync.WaitGroup // handlers
	asking sync.WaitGroup // requests to subscribe
	began  time.Time      // zero of the clock that the node receives

	instance string // random: a later process with the same name has not its leases

	mu        sync.Mutex
	stopped   bool
	running   map[uint64]*runningLease
	crashed   map[uint64]time.Time // deliveries whose handlers panicked, until their leases end
	lost      map[uint64]struct{}  // deliveries without a lease here, whose handlers have not returned
	verdicts  []*messages.Verdict
	clockSent time.Time // when the clock was last sent
	wake      chan struct{}

	attempt    int  // number of the last call of subscribe
	subscribed bool // it was subscribed before
	suspended  bool // it has lost the right
}

// subscribe requests leases, at first, over each new link, and after the subscription has
// ended.
func (t *subscriber) subscribe() {
	t.mu.Lock()
	if t.stopped {
		t.mu.Unlock()
		return
	}
	t.attempt++
	attempt := t.attempt
	t.asking.Add(1)
	t.mu.Unlock()
	t.link.done.Go(func() {
		defer t.asking.Done()
		request := &messages.SubscribeRequest{Topic: t.of.Topic, Subscriber: t.of.Name, Instance: t.instance, Credits: uint32(min(max(t.of.Credits, 0), 1<<30))} //nolint:gosec // bounded
		if q := t.of.Queue; q.Name != "" {
			request.Queue = &messages.Queue{Separator: q.Separator, DeadLetters: q.DeadLetters}
		}
		for {
			request.Clock = t.clock()
			ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
			answer, err := t.link.Ask(ctx, proto.CloneOf(request))
			cancel()
			if errors.Is(err, errBroken) || t.ctx.Err() != nil || t.link.ctx.Err() != nil {
				return // opened subscribes over the next link
			}
			if err == nil {
				var subscribed *messages.SubscribeResponse
				if subscribed, err = wakebell.Answered[*messages.SubscribeResponse](answer, nil); err == nil {
					t.resumed()
					t.reconcile(subscribed)
					return
				}
			}
			if t.final(err) {
				select {
				case t.failed <- fmt.Errorf("subscribe to %q: %w", t.of.Topic, err):
				default:
				}
				return
			}
			select {
			case <-time.After(wire.RedialMax / 2):
			case <-t.ctx.Done():
				return
			}
			t.mu.Lock()
			replaced := attempt != t.attempt
			t.mu.Unlock()
			if replaced {
				return
			}
		}
	})
}

// final reports whether another attempt to subscribe cannot help. A subscriber that was
// subscribed may get back a right that it has lost.
func (t *subscriber) final(err error) bool {
	if errors.Is(err, wakebell.ErrForbidden) {
		t.mu.Lock()
		subscribed := t.subscribed
		t.mu.Unlock()
		if subscribed {
			t.suspend(err.Error())
		}
		return !subscribed
	}
	return errors.Is(err, wakebell.ErrInvalid) || errors.Is(err, wakebell.ErrConflict) || errors.Is(err, ErrDenied)
}

// suspend logs once that the subscriber has lost its right.
func (t *subscriber) suspend(why string) {
	t.mu.Lock()
	known := t.suspended
	t.suspended = true
	t.mu.Unlock()
	if !known {
		t.link.cfg.logger.Warn("a subscription has lost its right; asking for it again", "topic", t.of.Topic, "subscriber", t.of.Name, "err", why)
	}
}

// resumed notes that the subscription is in force.
func (t *subscriber) resumed() {
	t.mu.Lock()
	was := t.suspended
	t.subscribed, t.suspended = true, false
	t.mu.Unlock()
	if was {
		t.link.cfg.logger.Info("a subscription has its right again", "topic", t.of.Topic, "subscriber", t.of.Name)
	}
}

// reconcile releases the leases that the node lists for this subscriber and that it
// does not have, for example because its link broke before they arrived. Those that it has
// lost while their handlers go on expire.
func (t *subscriber) reconcile(m *messages.SubscribeResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := make(map[uint64]bool, len(t.verdicts))
	for _, v := range t.verdicts {
		delivery, _ := wire.AnswerOf(v)
		pending[delivery] = true
	}
	for _, l := range m.GetHeld() {
		_, crashed := t.crashed[l.GetDelivery()] // it comes back when its lease ends
		_, lost := t.lost[l.GetDelivery()]
		if !crashed && !lost && !pending[l.GetDelivery()] && t.running[l.GetDelivery()] == nil {
			t.addVerdict(&messages.Verdict{Id: l.GetId(), Kind: &messages.Verdict_Release{Release: l.Release()}})
		}
	}
}

// ended cancels the contexts of handlers whose leases the subscriber no longer has. If the
// subscription itself has ended, it subscribes again.
func (t *subscriber) ended(m *messages.LeasesEnded) {
	for _, e := range m.GetEnded() {
		cause := wakebell.ErrLeaseLost
		switch e.GetReason() {
		case messages.LeaseEnd_LEASE_END_CANCELLED:
			cause = wakebell.ErrCancelled
		case messages.LeaseEnd_LEASE_END_TOO_OLD:
			cause = wakebell.ErrLeaseTooOld
		case messages.LeaseEnd_LEASE_END_DRAINING:
			t.interrupt(e.GetDelivery()) // the node waits for the verdict
			continue
		}
		t.lose(e.GetDelivery(), cause)
	}
	if fault := m.GetSubscription(); fault != nil && t.ctx.Err() == nil {
		if fault.GetCode() == messages.Code_CODE_FORBIDDEN {
			t.suspend(fault.GetMessage())
		}
		t.subscribe()
	}
}

// Stop ends the contexts of the handlers, which have wire.Grace to return. No request to
// subscribe is sent afterwards.
func (t *subscriber) Stop(cause error) {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.cancel(cause)
	returned := make(chan struct{})
	go func() { t.work.Wait(); close(returned) }()
	select {
	case <-returned:
	case <-time.After(wire.Grace):
	}
	t.asking.Wait()
}

// unsubscribe ends the subscription at the node, which releases its leases. Those of handlers
// that go on or have panicked are named, so that they expire, and no verdict follows about them.
func (t *subscriber) unsubscribe() {
	t.mu.Lock()
	running := slices.AppendSeq(slices.Collect(maps.Keys(t.running)), maps.Keys(t.crashed))
	running = slices.AppendSeq(running, maps.Keys(t.lost))
	clear(t.running)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), wire.Grace)
	defer cancel()
	if t.link.wait(ctx) == nil && t.flush() {
		_, _ = t.link.Ask(ctx, &messages.UnsubscribeRequest{Topic: t.of.Topic, Subscriber: t.of.Name, Running: running}) // on an error the leases expire
	}
}

package wakebelltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
)

// history is the delivery log of a World. Pollers add their exchanges with Redis,
// and the middleware the begin and end of handlers.
type history struct {
	mu    sync.Mutex
	all   []*record // in the order of the claims
	held  map[hold]*record
	steps int // counts claims and settlements
}

// record is a Delivery in progress.
type record struct {
	Delivery
	node    *Node
	claimed time.Time // as a Meta has it
	begun   bool
}

// hold identifies a lease of a poller.
type hold struct {
	node  *Node
	topic string
	id    string
	token exchange.Token
}

func newHistory() *history { return &history{held: map[hold]*record{}} }

// wire records the exchanges of one topic on one node.
type wire struct {
	poller.Source
	node  *Node
	topic string // without the prefix
}

// Wrapped returns the source whose exchanges are recorded.
func (s *wire) Wrapped() any { return s.Source }

func (s *wire) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	h := s.node.world.history
	if r.Want > 0 && h.claimedNow() {
		// The instant of its claim identifies a lease, so two claims of one id
		// must not share an instant; with a real Redis they never do.
		<-time.After(time.Microsecond)
	}
	reply, err := s.Source.Exchange(ctx, r)
	if err == nil {
		h.exchanged(s, r, reply)
	}
	return reply, err
}

// claimedNow reports whether a handler runs whose timer was claimed at this
// instant.
func (h *history) claimedNow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range slices.Backward(h.all) {
		if time.Since(r.At) > time.Microsecond {
			return false
		}
		if r.Ended.IsZero() {
			return true
		}
	}
	return false
}

func (h *history) exchanged(s *wire, r *exchange.Request, reply *exchange.Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	refused := map[int]exchange.RefusalReason{}
	for _, refusal := range reply.Refused {
		refused[refusal.Index] = refusal.Reason
	}
	for i, settlement := range r.Settle {
		key := hold{s.node, s.topic, settlement.ID, settlement.Token}
		if rec := h.held[key]; rec != nil {
			h.steps++
			delete(h.held, key)
			rec.settled(settlement, refused[i])
		}
	}
	for i, held := range r.Extend {
		key := hold{s.node, s.topic, held.ID, held.Token}
		rec := h.held[key]
		if rec == nil {
			continue
		}
		delete(h.held, key)
		if why := refused[len(r.Settle)+i]; why != 0 {
			rec.Outcome = outcomeOf(why)
			continue
		}
		if reply.Extended != "" {
			key.token = reply.Extended
		}
		h.held[key] = rec
	}
	for _, lease := range reply.Leases {
		h.claim(s, lease, reply.Now)
	}
}

func (h *history) claim(s *wire, l exchange.Lease, now time.Time) {
	h.steps++
	rec := &record{node: s.node, claimed: now, Delivery: Delivery{
		ID: l.ID, Topic: s.topic, Node: s.node.number, Attempt: l.Claims, Activation: l.Activation, At: now,
		Outcome: Running,
		Content: wakebell.Content{CorrelationID: l.ID, Body: l.Payload}, // until it is read
	}}
	h.all = append(h.all, rec)
	h.held[hold{s.node, s.topic, l.ID, l.Token}] = rec
}

// settled sets the outcome of a delivery from its settlement or the refusal.
func (r *record) settled(s exchange.Settlement, refused exchange.RefusalReason) {
	switch {
	case refused != 0:
		r.Outcome = outcomeOf(refused)
	case s.Verdict == exchange.Nack && errors.Is(r.Err, errPanicked):
		r.Outcome = Crashed
	case s.Verdict == exchange.Nack:
		r.Outcome = Retried
		if _, snoozed := wakebell.SnoozeDelay(r.Err); snoozed {
			r.Outcome = Snoozed
		}
	case s.Verdict == exchange.DeadLetter:
		r.Outcome = Dead
	case s.Verdict == exchange.Release:
		r.Outcome = Released
	case !r.begun:
		r.Outcome = Expired
	case !r.Ended.IsZero() && r.Err != nil:
		r.Outcome = Discarded
	default:
		r.Outcome = Acked
	}
	if r.Err == nil && r.Outcome == Dead {
		r.Err = errors.New(s.Reason)
	}
	if !r.begun { // it reached no handler
		r.Ended = time.Now()
	}
}

func outcomeOf(why exchange.RefusalReason) Outcome {
	switch why {
	case exchange.Superseded:
		return Superseded
	case exchange.Cancelled:
		return Cancelled
	default:
		return Lost
	}
}

// middleware records when the node's handlers begin and end. It is the
// outermost.
func (h *history) middleware(n *Node) wakebell.Middleware {
	return func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
		return func(ctx context.Context, t wakebell.Timer[[]byte]) (err error) {
			rec := h.begin(n, t.Meta)
			err = errPanicked
			defer func() { h.finish(ctx, rec, err) }()
			err = next(ctx, t)
			return err
		}
	}
}

// batchMiddleware is middleware for handlers of batches.
func (h *history) batchMiddleware(n *Node) wakebell.BatchMiddleware {
	return func(next wakebell.BatchFunc) wakebell.BatchFunc {
		return func(ctx context.Context, timers []wakebell.Timer[[]byte]) (verdicts wakebell.BatchError) {
			begun, returned := make([]*record, len(timers)), false
			for i, t := range timers {
				begun[i] = h.begin(n, t.Meta)
			}
			defer func() {
				for i, t := range timers {
					err := verdicts[t.ID]
					if !returned {
						err = errPanicked
					}
					h.finish(t.Context(), begun[i], err)
				}
			}()
			verdicts, returned = next(ctx, slices.Clone(timers)), true
			return verdicts
		}
	}
}

// errPanicked is the Err of a delivery whose handler did not return.
var errPanicked = errors.New("the handler panicked, or ended its goroutine")

// handOver orders the test's earlier reads and writes before the handlers that
// begin from now on. The passing of virtual time does not order them for the race
// detector.
func (h *history) handOver() {
	h.mu.Lock()
	defer h.mu.Unlock()
}

func (h *history) begin(n *Node, m wakebell.Meta) *record {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, rec := range slices.Backward(h.all) {
		if rec.node == n && rec.ID == m.ID && rec.Attempt == m.Attempt && rec.claimed.Equal(m.Delivered) && !rec.begun &&
			n.conn.Prefix+rec.Topic == m.Topic {
			rec.begun = true
			rec.Content = wakebell.Content{
				CorrelationID: m.CorrelationID, ContentType: m.ContentType, ReplyTo: m.ReplyTo, Headers: m.Headers, Body: m.Raw,
			}
			return rec
		}
	}
	panic(fmt.Sprintf("wakebelltest: timer %q of %q was delivered but not claimed", m.ID, m.Topic))
}

func (h *history) finish(ctx context.Context, r *record, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Ended, r.Err = time.Now(), err
	switch {
	case r.Outcome != Running:
	case errors.Is(err, poller.ErrTargetGone):
		r.Outcome = Crashed
	case err != nil && errors.Is(context.Cause(ctx), wakebell.ErrLeaseLost):
		r.Outcome = Lost
	}
}

// crashed marks the running deliveries of a node as crashed.
func (h *history) crashed(n *Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.all {
		if r.node == n && r.Outcome == Running {
			r.Outcome = Crashed
		}
	}
}

// progress returns the number of claims and settlements.
func (h *history) progress() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.steps
}

// unsettled reports whether a handler has returned whose settlement Redis has not
// confirmed.
func (h *history) unsettled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.all, (*record).pending)
}

func (r *record) pending() bool { return !r.Ended.IsZero() && r.Outcome == Running }

// leave stops waiting for settlements that are never sent: with RetryOnLeaseExpiry,
// a timer that failed or panicked is retried when its lease expires.
func (h *history) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.all {
		switch {
		case !r.pending() || r.Err == nil:
		case errors.Is(r.Err, errPanicked):
			r.Outcome = Crashed
		default:
			r.Outcome = Retried
		}
	}
}

// running returns the deliveries whose handlers have not returned.
func (h *history) running() []Delivery {
	return h.deliveries(func(r *record) bool { return r.begun && r.Ended.IsZero() })
}

func (h *history) deliveries(which func(*record) bool) []Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	var some []Delivery
	for _, r := range h.all {
		if which(r) {
			some = append(some, r.Delivery)
		}
	}
	return some
}

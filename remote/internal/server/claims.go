package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/remote/internal/subscriptions"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	maxClaim         = 1000
	minWait, maxWait = time.Second, time.Minute
	defaultWait      = 20 * time.Second
	// gatherFor is how long a claim waits for further leases after its first ones.
	gatherFor = 20 * time.Millisecond
)

func invalid(text string) error {
	return wire.StatusOf(messages.Failure(messages.Code_CODE_INVALID, text))
}

// bounded returns a duration of a request, or its default.
func bounded(field string, d *durationpb.Duration, preset, low, high time.Duration) (time.Duration, error) {
	if d == nil {
		return preset, nil
	}
	if got := d.AsDuration(); d.IsValid() && got >= low && got <= high {
		return got, nil
	}
	return 0, invalid(field + ": " + d.AsDuration().String() + ", want " + low.String() + " to " + high.String())
}

// claim subscribes until leases arrive, and returns them. They stay the caller's until
// they are settled or expire.
func (c *httpCall) claim(ctx context.Context, m *httpapi.ClaimRequest) (proto.Message, error) {
	wait, err := bounded("wait", m.GetWait(), defaultWait, minWait, maxWait)
	if err != nil {
		return nil, err
	}
	if m.GetMax() > maxClaim {
		return nil, invalid("max: want 1 to 1,000")
	}
	t := newLeaseToken()
	request := &messages.SubscribeRequest{Topic: m.GetTopic(), Subscriber: t.subscriber(), Credits: max(m.GetMax(), 1)}
	if m.GetQueue() {
		request.Queue = &messages.Queue{}
	}
	in, done, err := c.wait(request)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := in.send(c.router, subscriptions.Pull{SubscribeRequest: request}); err != nil {
		return nil, err
	}
	p := &pulled{into: in, request: request, leases: map[uint64]arrived{}}
	err = p.await(ctx, wait)
	if err == nil {
		err = p.detach(ctx)
	}
	if err != nil {
		// Its leases would expire otherwise: it has no handler.
		_ = in.send(c.router, &messages.UnsubscribeRequest{Topic: m.GetTopic(), Subscriber: t.subscriber()})
		return nil, err
	}
	answer := &httpapi.ClaimResponse{}
	for _, delivery := range p.order {
		if l, held := p.leases[delivery]; held {
			answer.Leases = append(answer.Leases, claimed(l, t))
		}
	}
	return answer, nil
}

// pulled are the leases that have arrived for a claim.
type pulled struct {
	into    *inbox
	request *messages.SubscribeRequest
	leases  map[uint64]arrived
	order   []uint64 // deliveries, the first first
}

// arrived is a lease, and when it expires: its answer waits for further ones.
type arrived struct {
	*messages.Lease
	until time.Time
}

// take processes a message. It returns the error that ends the claim.
func (p *pulled) take(message any) error {
	switch m := message.(type) {
	case *messages.Error:
		return wire.StatusOf(m)
	case *messages.Leases:
		for _, l := range m.GetLeases() {
			p.leases[l.GetDelivery()] = arrived{l, time.Now().Add(l.GetTtl().AsDuration())}
			p.order = append(p.order, l.GetDelivery())
		}
	case *messages.LeasesEnded:
		for _, l := range m.GetEnded() {
			if l.GetReason() == messages.LeaseEnd_LEASE_END_DRAINING {
				return errClaimDrained // the node awaits what becomes of it
			}
			delete(p.leases, l.GetDelivery())
		}
		if fault := m.GetSubscription(); fault != nil {
			return wire.StatusOf(fault)
		}
	}
	return nil
}

// await waits for the first leases, and a little for more.
func (p *pulled) await(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for gathering := false; ; {
		m, ok := p.into.receive(ctx, timer.C)
		if !ok {
			return nil // detach notices the end of ctx
		}
		if err := p.take(m); err != nil {
			return err
		}
		if len(p.leases) >= int(p.request.GetCredits()) {
			return nil
		}
		if len(p.leases) > 0 && !gathering {
			gathering = true
			timer.Reset(gatherFor)
		}
	}
}

var errClaimDrained = wire.StatusOf(messages.Failure(messages.Code_CODE_DRAINING, "the request or the node has ended"))

// detach ends the deliveries, and takes what was delivered before.
func (p *pulled) detach(ctx context.Context) error {
	router := p.into.server.router
	if ctx.Err() != nil {
		return errClaimDrained
	}
	if err := p.into.send(router, subscriptions.Detach{Topic: p.request.GetTopic(), Subscriber: p.request.GetSubscriber()}); err != nil {
		return err
	}
	late := time.NewTimer(wire.AnswerWithin)
	defer late.Stop()
	for {
		m, ok := p.into.receive(context.WithoutCancel(ctx), late.C)
		if !ok { // the hub is busy; an orderly end would give back leases that the caller gets
			p.into.end(actor.TerminatedReason_AddressTerminated)
			return nil
		}
		if _, done := m.(subscriptions.Detached); done {
			return nil
		}
		if err := p.take(m); err != nil {
			return err
		}
	}
}

func claimed(l arrived, t leaseToken) *httpapi.ClaimedLease {
	t.delivery = l.GetDelivery()
	return &httpapi.ClaimedLease{
		Token: t.String(), Id: l.GetId(), Body: l.GetBody(), ContentType: l.GetContentType(), CorrelationId: l.GetCorrelationId(),
		ReplyTo: l.GetReplyTo(), Headers: l.GetHeaders(), Activation: l.GetActivation(), Delivered: l.GetDelivered(),
		Attempt: l.GetAttempt(), Failures: l.GetFailures(), Trace: l.GetTrace(),
		Ttl: durationpb.New(max(time.Until(l.until), 0)),
	}
}

// leaseToken identifies a lease: the subscriber that pulled it, which is random, and the
// delivery. It is valid for the principal that claimed it.
type leaseToken struct {
	secret   [16]byte
	delivery uint64
}

func newLeaseToken() (t leaseToken) {
	_, _ = rand.Read(t.secret[:]) // it never fails
	return t
}

func (t leaseToken) subscriber() string {
	return "http-" + base64.RawURLEncoding.EncodeToString(t.secret[:])
}

func (t leaseToken) String() string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(t.secret[:], t.delivery))
}

func parseLeaseToken(text string) (t leaseToken, ok bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) != len(t.secret)+8 {
		return t, false
	}
	copy(t.secret[:], data)
	t.delivery = binary.BigEndian.Uint64(data[len(t.secret):])
	return t, true
}

// ErrLeaseLost is the answer about a lease that the caller does not have.
var ErrLeaseLost = wire.StatusOf(messages.Failure(messages.Code_CODE_LEASE_LOST, "the lease has expired, was settled before, or is another node's"))

// ofLease is a request about a lease.
type ofLease interface {
	GetTopic() string
	GetToken() string
}

// settle carries out a verdict.
func (c *httpCall) settle(ctx context.Context, m ofLease, verdict proto.Message) (proto.Message, error) {
	if _, err := c.verdict(ctx, m, verdict); err != nil {
		return nil, err
	}
	return &httpapi.SettleResponse{}, nil
}

func (c *httpCall) extendLease(ctx context.Context, m ofLease) (proto.Message, error) {
	done, err := c.verdict(ctx, m, &messages.Extend{})
	if err != nil {
		return nil, err
	}
	return &httpapi.ExtendResponse{Ttl: durationpb.New(done.TTL)}, nil
}

// verdict sends a verdict to the hub of the topic, and waits for its answer.
func (c *httpCall) verdict(ctx context.Context, m ofLease, verdict proto.Message) (done subscriptions.Settled, err error) {
	t, ok := parseLeaseToken(m.GetToken())
	if !ok {
		return done, invalid("token: it is not a token of a lease")
	}
	if n, is := verdict.(*messages.Nack); is && n.GetDelay() != nil && (!n.GetDelay().IsValid() || n.GetDelay().AsDuration() < 0) {
		return done, invalid("delay: want 0s or more")
	}
	if n, is := verdict.(*messages.Nack); is && n.GetSnooze() {
		if d := n.GetDelay().AsDuration(); d < wakebell.MinSnooze || d > wakebell.MaxSnooze {
			return done, invalid("delay: a snooze wants 0.001s to 31536000s")
		}
	}
	if err := c.permit(&messages.Verdicts{Topic: m.GetTopic(), Subscriber: t.subscriber()}); err != nil {
		return done, err
	}
	fields := verdict.ProtoReflect()
	fields.Set(fields.Descriptor().Fields().ByName("delivery"), protoUint(t.delivery))
	in := c.newInbox(c.caller)
	defer in.end(actor.TerminatedReason_Stopped)
	if err := in.send(c.router, subscriptions.Settle{Topic: m.GetTopic(), Subscriber: t.subscriber(), Delivery: t.delivery, Verdict: verdict}); err != nil {
		return done, err
	}
	late := time.NewTimer(wire.AnswerWithin)
	defer late.Stop()
	answer, _ := in.receive(ctx, late.C)
	done, ok = answer.(subscriptions.Settled)
	switch {
	case !ok:
		return done, wire.StatusOf(messages.Failure(messages.Code_CODE_UNAVAILABLE, "the outcome is not known yet"))
	case !done.Held:
		return done, ErrLeaseLost
	case done.Fault != nil:
		return done, wire.StatusOf(done.Fault)
	}
	return done, nil
}

// keep stores something of the timer of a lease, and waits until Redis has it.
func (c *httpCall) keep(ctx context.Context, m ofLease, request *messages.KeepRequest) (proto.Message, error) {
	t, ok := parseLeaseToken(m.GetToken())
	if !ok {
		return nil, invalid("token: it is not a token of a lease")
	}
	request.Topic, request.Subscriber, request.Delivery = m.GetTopic(), t.subscriber(), t.delivery
	if err := c.permit(request); err != nil {
		return nil, err
	}
	in := c.newInbox(c.caller)
	defer in.end(actor.TerminatedReason_Stopped)
	if err := in.send(c.router, request); err != nil {
		return nil, err
	}
	late := time.NewTimer(wire.AnswerWithin + wire.DefaultTimeout)
	defer late.Stop()
	answer, _ := in.receive(ctx, late.C)
	switch a := answer.(type) {
	case *messages.KeepResponse:
		return &httpapi.KeepResponse{}, nil
	case *messages.Error:
		return nil, wire.StatusOf(a)
	}
	return nil, wire.StatusOf(messages.Failure(messages.Code_CODE_UNAVAILABLE, "the outcome is not known yet"))
}

package subscriptions

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/peer"
)

const (
	// sweepEvery is how often a hub looks for expired leases.
	sweepEvery = 250 * time.Millisecond
)

// hub distributes the leases of a topic to its subscribers. It is the target of a
// forwarding handler. The poller claims as many leases as all subscribers have
// credits for, and the hub gives each subscriber as many as it has credits.
type hub struct {
	*hubs
	topic string
	self  *actor.PID
	root  *actor.RootContext
	ctx   context.Context //nolint:containedctx // ends with the actor
	end   context.CancelFunc

	subscribers   map[subscriberKey]*subscriber
	departed      map[*subscriber]struct{} // they have ended or were replaced, and leases of theirs are left
	order         []*subscriber            // subscribers that can take leases, in turn
	turn          int
	held          map[uint64]*held // by delivery
	waiting       []*held          // leases that no subscriber has credits and memory for
	waitingMemory *limits.Holder   // the memory of waiting leases
	flushing      bool

	tuning   *tuning
	arrivals *arrivals
	asked    []asked // subscriptions that wait until the topic is handled
	sweeping *time.Timer

	router    *actor.PID
	holdings  map[string]*holding // by principal
	used      int                 // leases that all subscribers hold
	lingering *limits.Party       // charged for the last subscription until the topic is closed
	idle      *limits.Party       // charged for the closed topic

	reattaching bool      // a reattach message is scheduled
	lingerUntil time.Time // the topic stays open for the next Pull until then
}

// subscriberKey identifies a subscriber. Two owners may use the same name, and so may a
// subscription and one that has ended.
type subscriberKey struct {
	owner, name string
	ended       uint64 // generation of the subscription that has ended; 0: it goes on
}

type subscriber struct {
	key        subscriberKey
	instance   string // what subscribed: a process, or else its session or actor
	generation uint64
	credits    int
	to         *actor.PID // nil: unreachable or ended
	last       *actor.PID // to, before it became unreachable
	awaited    bool       // its peer is connected: it is attached again when the link is up
	pulls      bool       // its caller of HTTP has its leases once it is detached
	clock      clock
	party      limits.Party   // charged for the subscription
	mine       *holding       // the holding of its principal
	used       int            // leases that it holds
	memory     *limits.Holder // the memory of those leases
	typical    int            // bytes of a typical lease
	out        []*held        // leases that are not sent yet
}

// held is a lease that a subscriber holds, or that is on its way there.
type held struct {
	lease *poller.ForwardedLease
	of    *subscriber // nil: the lease waits for a subscriber
	size  int
	since time.Time
	until time.Time // the lease has expired by then, even without a notification
	large bool      // only callers of HTTP can take it
	sent  bool      // to its subscriber
	gone  bool
	keeps bool // a KeepRequest is carried out

	counted bool // it is charged to waitingMemory

	extending []*actor.PID // callers of HTTP that await an extension
}

// asked is an unanswered SubscribeRequest.
type asked struct {
	message *messages.SubscribeRequest
	sender  *actor.PID
	of      *subscriber
}

// Messages that a hub sends to itself.
type (
	flush struct{}
	sweep struct{}
	tuned struct {
		have int
		err  error
	}
	graceOver struct {
		key        subscriberKey
		generation uint64
	}
)

func newHub(shared *hubs, topic string, t *tuning, a *arrivals) *hub {
	return &hub{
		hubs: shared, topic: topic,
		subscribers: map[subscriberKey]*subscriber{}, departed: map[*subscriber]struct{}{}, held: map[uint64]*held{}, holdings: map[string]*holding{},
		waitingMemory: shared.guard.WaitingLeases.Holder(limits.Party{}),
		tuning:        t, arrivals: a,
	}
}

func (h *hub) Receive(c actor.Context) {
	owner, host := "", ""
	if header := c.MessageHeader(); header != nil {
		owner, host = header.Get(messages.PrincipalHeader), header.Get(messages.HostHeader)
	}
	switch m := c.Message().(type) {
	case *actor.Started:
		h.self, h.router, h.root = c.Self(), c.Parent(), c.ActorSystem().Root
		h.arrivals.begin(func() { h.root.Send(h.self, arrived{}) })
		h.ctx, h.end = context.WithCancel(h.guard.Closing)
		h.tuning.busy = false
		h.tune() // no leases at first; after a crash the topic is closed
	case *actor.Stopping, *actor.Restarting:
		h.Stop()
	case *messages.SubscribeRequest:
		h.subscribe(c, m, owner, host, false)
	case Pull:
		h.subscribe(c, m.SubscribeRequest, owner, host, true)
	case Detach:
		h.detachPulled(c, m, owner)
	case Settle:
		h.settle(c, m, owner)
	case lingerOver:
		h.tune()
	case *messages.UnsubscribeRequest:
		h.unsubscribe(m, owner, c.Sender())
		c.Respond(&messages.UnsubscribeResponse{Request: m.GetRequest()})
	case *messages.Verdicts:
		h.verdicts(m, owner, c.Sender())
	case *messages.KeepRequest:
		h.keep(c, m, owner)
	case kept:
		h.kept(m)
	case arrived:
		h.arrived()
	case flush:
		h.flush()
	case sweep:
		h.sweep()
	case reattach:
		h.reattach(c, m)
	case tuned:
		h.tuned(m)
	case *actor.Terminated:
		h.terminated(m)
	case graceOver:
		h.graceOver(m)
	case idleOver:
		h.idleOver(m)
	case RightsChanged:
		h.rightsChanged()
	}
}

func (h *hub) Stop() {
	if h.end != nil {
		h.end()
	}
	if h.sweeping != nil {
		h.sweeping.Stop()
	}
	h.waitingMemory.Clear()
	for _, s := range h.subscribers {
		s.memory.Clear()
	}
	for s := range h.departed {
		s.memory.Clear()
	}
	h.settleCharges()
}

// subscribe creates or replaces a subscription, which pulls if it is that of a caller of HTTP.
func (h *hub) subscribe(c actor.Context, m *messages.SubscribeRequest, owner, host string, pulls bool) {
	key := subscriberKey{owner: owner, name: m.GetSubscriber()}
	s := h.subscribers[key]
	credits, of := int(m.GetCredits()), limits.Party{Principal: owner, Host: host}
	h.tuning.got++
	var fault *messages.Error
	switch {
	case !h.isFor(m.GetQueue()):
		fault = messages.Failure(messages.Code_CODE_CONFLICT, "a topic and a queue of one name cannot be subscribed to at a time")
	case !h.fits(key, credits):
		fault = messages.Failure(messages.Code_CODE_OVERLOADED, "the principal has too many credits or too many subscribers on the topic")
	case s == nil:
		fault = peer.Overloaded(h.enter(of))
	}
	if fault != nil {
		fault.Request = m.GetRequest()
		c.Respond(fault)
		h.closeIfIdle()
		return
	}
	if s == nil {
		s = h.join(key, of)
	} else if s.instance != instanceOf(m, c.Sender()) {
		h.replace(s)
	} else if s.to != nil && !s.to.Equal(c.Sender()) {
		c.Unwatch(s.to)
	}
	// Generations grow across restarts of the node too.
	s.generation = max(s.generation+1, uint64(time.Now().UnixMicro())) //nolint:gosec // after 1970
	s.credits, s.to, s.out, s.clock, s.pulls = credits, c.Sender(), nil, clock{}, pulls
	s.clock.update(m.GetClock(), time.Now())
	h.remember(s, host)
	s.instance = instanceOf(m, c.Sender())
	h.resume(s)
	c.Watch(s.to)
	if !slices.Contains(h.order, s) {
		h.order = append(h.order, s)
	}
	h.asked = append(h.asked, asked{m, c.Sender(), s})
	h.tune()
	h.answerAsked()
}

// answerAsked answers the pending requests once the topic is handled.
func (h *hub) answerAsked() {
	if h.tuning.have == absent {
		return
	}
	for _, a := range h.asked {
		answer := &messages.SubscribeResponse{Request: a.message.GetRequest(), Generation: a.of.generation}
		for _, l := range h.held {
			if l.of == a.of {
				answer.Held = append(answer.Held, &messages.Lease{Id: l.lease.GetId(), Delivery: l.lease.GetDelivery(), Ttl: ttlOf(l.lease, time.Now())})
			}
		}
		h.root.Send(a.sender, answer)
	}
	h.asked = nil
	h.deal()
}

// unsubscribe ends the subscription of the sender. A process that another one of its name has
// replaced ends only what is left of its own.
func (h *hub) unsubscribe(m *messages.UnsubscribeRequest, owner string, sender *actor.PID) {
	key := subscriberKey{owner: owner, name: m.GetSubscriber()}
	if former := h.former(key, sender); former != nil {
		h.endReplaced(former, m.GetRunning()...)
	} else if s := h.subscribers[key]; s != nil {
		h.endSubscription(s, m.GetRunning()...)
	}
}

// endSubscription ends a subscription and releases the leases of its subscriber, but for those
// of deliveries whose handlers may go on. These expire. Until then they count towards the leases
// and the memory that their principal may hold, because the node holds them; the subscription and
// its credits are free at once.
func (h *hub) endSubscription(s *subscriber, running ...uint64) {
	h.leaveOrder(s)
	s.to, s.out, s.awaited = nil, nil, false
	if slices.ContainsFunc(running, func(delivery uint64) bool { l := h.held[delivery]; return l != nil && l.of == s }) {
		h.departed[s] = struct{}{}
	}
	h.drop(s)
	h.tune() // before the released leases are due again
	h.release(s, running)
	h.deal()
}

// release releases the leases of a subscription that has ended, but for those of deliveries.
func (h *hub) release(s *subscriber, but []uint64) {
	s.key.ended = s.generation // no later subscription settles them
	expire := make(map[uint64]bool, min(len(but), s.used))
	for _, delivery := range but {
		if l := h.held[delivery]; l != nil && l.of == s {
			expire[delivery] = true
		}
	}
	for delivery, l := range h.held {
		if l.of == s && !expire[delivery] {
			l.lease.Answer(l.lease.Release())
			h.free(l)
		}
	}
	h.tune()
}

func (h *hub) leaveOrder(s *subscriber) {
	h.order = slices.DeleteFunc(h.order, func(other *subscriber) bool { return other == s })
}

package subscriptions

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/peer"
)

// router forwards the messages of subscribers to the hubs of their topics.
type router struct {
	hubs  *hubs
	topic map[string]*openTopic
}

// openTopic is a topic with a hub.
type openTopic struct {
	hub  *actor.PID
	sent uint64 // SubscribeRequests forwarded to the hub
}

// hubs is the state that the hubs of a server share.
type hubs struct {
	system *wakebell.System
	guard  *peer.Guard

	subscriptions, idleTopics *limits.Budget
}

func newHubs(system *wakebell.System, g *peer.Guard) *hubs {
	return &hubs{
		system: system, guard: g,
		subscriptions: limits.NewBudget(limits.Subscriptions), idleTopics: limits.NewBudget(limits.IdleTopics),
	}
}

// RouterProps returns the props of the router of a System's subscriptions.
func RouterProps(system *wakebell.System, g *peer.Guard) *actor.Props {
	shared := newHubs(system, g)
	return actor.PropsFromProducer(func() actor.Actor { return &router{hubs: shared} })
}

func (r *router) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.topic = map[string]*openTopic{}
	case *messages.SubscribeRequest:
		r.subscribe(c, m)
	case Pull:
		r.subscribe(c, m.SubscribeRequest)
	case Detach:
		r.forward(c, m.Topic, Detached{})
	case Settle:
		r.forward(c, m.Topic, Settled{})
	case peer.TouchTopic:
		if open := r.topic[m.Topic]; open != nil {
			c.RequestWithCustomSender(open.hub, &actor.Touch{}, c.Sender())
		} else {
			c.Respond(&actor.Touched{Who: c.Self()})
		}
	case hubIdle:
		r.remove(c, m)
	case RightsChanged:
		for _, open := range r.topic {
			c.Send(open.hub, m)
		}
	case *messages.UnsubscribeRequest:
		r.forward(c, m.GetTopic(), &messages.UnsubscribeResponse{Request: m.GetRequest()})
	case *messages.KeepRequest:
		r.forward(c, m.GetTopic(), poller.NotHeld(m))
	case *messages.Verdicts:
		if open := r.topic[m.GetTopic()]; open != nil {
			c.Forward(open.hub)
		}
	}
}

// subscribe forwards the message that it receives to the hub of its subscription.
func (r *router) subscribe(c actor.Context, m *messages.SubscribeRequest) {
	hub, fault := r.hub(c, m)
	if fault != nil {
		fault.Request = m.GetRequest()
		c.Respond(fault)
		return
	}
	c.Forward(hub)
}

// forward passes the message that it receives to the hub of a topic. Without one it
// answers.
func (r *router) forward(c actor.Context, topic string, without any) {
	if open := r.topic[topic]; open != nil {
		c.Forward(open.hub)
		return
	}
	c.Respond(without)
}

// remove ends the hub of a topic without subscribers, unless a SubscribeRequest is
// on its way to it.
func (r *router) remove(c actor.Context, m hubIdle) {
	if open := r.topic[m.topic]; open != nil && open.hub.Equal(m.hub) && open.sent == m.got {
		delete(r.topic, m.topic)
		r.hubs.guard.Filter.Close(m.hub.GetId())
		c.Poison(m.hub)
	}
}

// hub returns the hub of a subscription's topic. It spawns one if there is none.
func (r *router) hub(c actor.Context, m *messages.SubscribeRequest) (*actor.PID, *messages.Error) {
	switch {
	case c.Sender() == nil:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "subscribe: the request has no sender to receive the leases")
	case m.GetTopic() == "" || len(m.GetTopic()) > maxName:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "topic: want 1 to 512 bytes")
	case m.GetSubscriber() == "" || len(m.GetSubscriber()) > maxSubscriber:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "subscriber: want 1 to 256 bytes")
	case len(m.GetInstance()) > maxInstance:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "instance: want at most 64 bytes")
	case len(m.GetQueue().GetSeparator())+len(m.GetQueue().GetDeadLetters()) > maxName:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "queue: want at most 512 bytes")
	case m.GetCredits() < 1 || m.GetCredits() > maxCredits:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "credits: want 1 to 10,000")
	}
	if open := r.topic[m.GetTopic()]; open != nil {
		open.sent++
		return open.hub, nil
	}
	topic := m.GetTopic()
	tuning, arrivals := &tuning{have: absent, want: absent}, &arrivals{}
	hub := c.Spawn(actor.PropsFromProducer(func() actor.Actor { return newHub(r.hubs, topic, tuning, arrivals) }))
	r.hubs.guard.Filter.Open(hub.GetId(), func(e *peer.Entry) { e.Terminated = true })
	r.topic[topic] = &openTopic{hub: hub, sent: 1}
	return hub, nil
}

package remote

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

const (
	// maxTopics bounds the topics that were ever subscribed to at a node.
	maxTopics = 10_000
	// maxCredits bounds the leases of a subscriber, and of a topic at a node.
	maxCredits = 10_000
	// maxSubscribers bounds those of a topic at a node.
	maxSubscribers = 1000
	maxName        = 512 // bytes of a topic
	maxSubscriber  = 256 // bytes of a subscriber's name
)

// router passes what subscribers send to the hubs of their topics.
type router struct {
	hubs  *hubs
	topic map[string]*actor.PID
}

// hubs is what the hubs of a server share.
type hubs struct {
	system *wakebell.System
	guard  *guard
}

func (r *router) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.topic = map[string]*actor.PID{}
	case *messages.Subscribe:
		if hub, fault := r.hub(c, m); fault != nil {
			fault.Request = m.GetRequest()
			c.Respond(fault)
		} else {
			c.Forward(hub)
		}
	case *messages.Unsubscribe:
		if hub := r.topic[m.GetTopic()]; hub != nil {
			c.Forward(hub)
		} else {
			c.Respond(&messages.Unsubscribed{Request: m.GetRequest()})
		}
	case *messages.Verdicts:
		if hub := r.topic[m.GetTopic()]; hub != nil {
			c.Forward(hub)
		}
	}
}

// hub is that of a subscription's topic, spawned where there is none.
func (r *router) hub(c actor.Context, m *messages.Subscribe) (*actor.PID, *messages.Error) {
	switch {
	case c.Sender() == nil:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "subscribe: without a sender nobody gets the leases")
	case m.GetTopic() == "" || len(m.GetTopic()) > maxName:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "topic: want 1 to 512 bytes")
	case m.GetSubscriber() == "" || len(m.GetSubscriber()) > maxSubscriber:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "subscriber: want 1 to 256 bytes")
	case len(m.GetQueue().GetSeparator())+len(m.GetQueue().GetDeadLetters()) > maxName:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "queue: want at most 512 bytes")
	case m.GetCredits() < 1 || m.GetCredits() > maxCredits:
		return nil, messages.Failure(messages.Code_CODE_INVALID, "credits: want 1 to 10,000")
	}
	if hub := r.topic[m.GetTopic()]; hub != nil {
		return hub, nil
	}
	if len(r.topic) >= maxTopics {
		return nil, messages.Failure(messages.Code_CODE_OVERLOADED, "too many topics were subscribed to")
	}
	topic := m.GetTopic()
	tuning, arrivals := &tuning{have: absent, want: absent}, &arrivals{}
	hub := c.Spawn(actor.PropsFromProducer(func() actor.Actor { return newHub(r.hubs, topic, tuning, arrivals) }))
	r.hubs.guard.filter.open(hub.GetId(), func(e *entry) { e.terminated = true })
	r.topic[topic] = hub
	return hub, nil
}

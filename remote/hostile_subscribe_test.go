package remote_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A topic must not stay open for the life of the node once it had a subscriber.
func TestTopicEndsWithItsLastSubscriber(t *testing.T) {
	t.Parallel()
	n := serve(t, withMallory())
	k := talk(t, n, malloryToken)
	name := redistest.Name(t)
	n.subscribes(t, secret)
	actors := func() (all int) {
		for _, bucket := range n.ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
			all += bucket.Count()
		}
		return all
	}
	before := actors()
	for round := range 3 {
		all := make([]proto.Message, 50)
		for i := range all {
			all[i] = subscription(name+strconv.Itoa(i+round*len(all)), 1)
		}
		for _, answer := range k.asks(all...) {
			require.IsType(t, &messages.SubscribeResponse{}, answer)
		}
		for i := range all {
			all[i] = &messages.UnsubscribeRequest{Topic: name + strconv.Itoa(i+round*len(all)), Subscriber: "s"}
		}
		k.asks(all...)
	}
	require.Greater(t, actors(), before)
	eventually(t, func() bool { return actors() <= before })
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(subscription(name+"0", 1)), "a topic can be opened again")
}

// A topic stays open for a while after its last subscriber left.
func TestIdleTopicIsOpenedAgain(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	k, topic := talk(t, n, secret), redistest.Name(t)
	for range 20 {
		require.IsType(t, &messages.SubscribeResponse{}, k.ask(subscription(topic, 1)))
		k.say(&messages.UnsubscribeRequest{Topic: topic, Subscriber: "s"})
	}
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(subscription(topic, 1)))
}

// 10,000 credits of one principal on a topic must not shut out other subscribers.
func TestCreditsOfOnePrincipalLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	n := serve(t, withMallory())
	mallory, topic := talk(t, n, malloryToken), n.topic.Name()
	require.IsType(t, &messages.SubscribeResponse{}, mallory.ask(subscription(topic, 10_000)))
	mallory.refused(messages.Code_CODE_OVERLOADED, &messages.SubscribeRequest{Topic: topic, Subscriber: "another", Credits: 1})

	drafts := make([]wakebell.Draft, 6000)
	for i := range drafts {
		drafts[i] = n.topic.Draft("x")
	}
	_, err := n.Client().Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	held := 0
	for held < 5000 { // half of what a topic may have
		for _, m := range mallory.replies() {
			held += len(m.(*messages.Leases).GetLeases())
		}
	}
	require.Equal(t, 5000, held)
	handled := make(chan struct{}, len(drafts))
	subscribe(t, dial(t, n), remote.Subscription{Topic: topic, Name: "honest", Credits: 10_000}, func(context.Context, *messages.Lease) error {
		handled <- struct{}{}
		return nil
	})
	for range len(drafts) - held {
		receive(t, handled)
	}
}

// A subscription with keys of its own must not lock the owner of a queue out.
func TestSubscriberDoesNotChooseKeysOfQueue(t *testing.T) {
	t.Parallel()
	named, cfg := redistest.Name(t), withMallory()
	cfg.Queues = []wakebelltype.QueueKeys{{Name: named, Separator: "/"}}
	n := serve(t, cfg)
	mallory, owner, plain := talk(t, n, malloryToken), talk(t, n, secret), redistest.Name(t)
	to := func(name string, queue *messages.Queue) *messages.SubscribeRequest {
		return &messages.SubscribeRequest{Topic: name, Subscriber: "s", Credits: 1, Queue: queue}
	}
	mallory.refused(messages.Code_CODE_INVALID, to(plain, &messages.Queue{Separator: ":"}))
	mallory.refused(messages.Code_CODE_INVALID, to(named, &messages.Queue{Separator: "::"}))
	mallory.refused(messages.Code_CODE_CONFLICT, to(named, nil))
	for _, queue := range []*messages.Queue{{}, {Separator: "::"}} {
		require.IsType(t, &messages.SubscribeResponse{}, owner.ask(to(plain, queue)))
	}
	for _, queue := range []*messages.Queue{{}, {Separator: "/"}} {
		require.IsType(t, &messages.SubscribeResponse{}, owner.ask(to(named, queue)))
	}
}

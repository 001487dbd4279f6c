package remote_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// A subscriber that leaves while a handler goes on names its delivery: no other handler may run
// beside it. The node releases the others, and gives the next subscription all its credits.
func TestLeasesOfHandlersThatGoOnAreNotReleased(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
	n := serve(t, cfg)
	topic, first, c := n.topic.Name(), talk(t, n, secret), dial(t, n)
	for _, id := range []string{"a", "b"} {
		_, err := n.topic.Schedule(t.Context(), c, "x", wakebell.ID(id))
		require.NoError(t, err)
	}
	require.IsType(t, &messages.SubscribeResponse{}, first.ask(subscription(topic, 2)))
	held := first.take(2)
	left := &messages.UnsubscribeRequest{Topic: topic, Subscriber: "s", Running: []uint64{held["a"].GetDelivery(), 1}}
	require.IsType(t, &messages.UnsubscribeResponse{}, first.ask(left))

	// The next one of this name has neither the lease nor fewer credits.
	handled := make(chan string, 10)
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(_ context.Context, l *messages.Lease) error {
		handled <- l.GetId()
		return nil
	})
	require.Equal(t, "b", receive(t, handled))
	first.say(&messages.Verdicts{Topic: topic, Subscriber: "s", Verdicts: []*messages.Verdict{
		{Id: "a", Kind: &messages.Verdict_Release{Release: held["a"].Release()}},
	}})
	require.IsType(t, &messages.GetTimerResponse{}, first.ask(&messages.GetTimerRequest{Topic: topic, Id: "a"}))
	first.end() // nor does the end of the session release it
	<-time.After(2 * time.Second)
	info, _, err := c.Get(t.Context(), topic, "a")
	require.NoError(t, err)
	require.Equal(t, wakebell.StateRunning, info.State)
	require.Equal(t, 1, info.Attempts)
	require.Empty(t, handled)
}

// take waits until a session has leases of so many timers, and returns them by id.
func (k *talker) take(count int) map[string]*messages.Lease {
	k.t.Helper()
	held := map[string]*messages.Lease{}
	add := func(all []proto.Message) {
		for _, m := range all {
			if leases, ok := m.(*messages.Leases); ok {
				for _, l := range leases.GetLeases() {
					held[l.GetId()] = l
				}
			}
		}
	}
	for add(k.others); len(held) < count; {
		add(k.replies())
	}
	return held
}

// A subscription that has ended while a handler goes on is no subscription of its principal any
// more, and its credits are free.
func TestEndedSubscriptionTakesNoPlace(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
	n := serve(t, cfg)
	topic, k := n.topic.Name(), talk(t, n, secret)
	named := func(name string, credits uint32) *messages.SubscribeRequest {
		m := subscription(topic, credits)
		m.Subscriber = name
		return m
	}
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID("a"))
	require.NoError(t, err)
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(named("leaves", 10_000)))
	left := &messages.UnsubscribeRequest{Topic: topic, Subscriber: "leaves", Running: []uint64{k.take(1)["a"].GetDelivery()}}
	require.IsType(t, &messages.UnsubscribeResponse{}, k.ask(left))
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(named("again", 10_000)))
	require.IsType(t, &messages.UnsubscribeResponse{}, k.ask(&messages.UnsubscribeRequest{Topic: topic, Subscriber: "again"}))

	const most = 500 // half of those that a topic has at a node
	var all []proto.Message
	for i := range most {
		all = append(all, named(fmt.Sprint(i), 1))
	}
	for i, answer := range k.asks(all...) {
		require.IsType(t, &messages.SubscribeResponse{}, answer, i)
	}
	k.refused(messages.Code_CODE_OVERLOADED, named("one more", 1))
	info, _, err := n.Client().Get(t.Context(), topic, "a")
	require.NoError(t, err)
	require.Equal(t, wakebell.StateRunning, info.State)
}

// A handler may go on when the right to handle its topic is withdrawn: the node cannot know when its
// process hears of that, and a consumer over HTTP hears nothing. So no other one gets the timer before
// the lease expires.
func TestLeasesOfWithdrawnRightExpire(t *testing.T) {
	t.Parallel()
	for name, overHTTP := range map[string]bool{"a session": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, topic := withMallory(), strings.ReplaceAll(redistest.Name(t), "/", "-")
			cfg.Rights = rightsOf(t, "mallory * topic:"+topic+"\ntests * *")
			cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
			n, bells := serveHTTP(t, cfg), wakebell.NewTopic[string](topic)
			schedule := func(id string) {
				_, err := bells.Schedule(t.Context(), n.Client(), "x", wakebell.ID(id))
				require.NoError(t, err)
			}
			schedule("a")
			if overHTTP {
				path := "/v1/topics/" + topic + "/leases:claim"
				require.Len(t, do(t, n.request(t, "POST", path, malloryToken, `{"wait":"1m"}`)).ok(t)["leases"], 1)
			} else {
				k := talk(t, n, malloryToken)
				require.IsType(t, &messages.SubscribeResponse{}, k.ask(subscription(topic, 10)))
				k.take(1)
			}
			require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *")))
			handled := make(chan string, 10)
			subscribe(t, dial(t, n), remote.Subscription{Topic: topic, Name: "honest"}, func(_ context.Context, l *messages.Lease) error {
				handled <- l.GetId()
				return nil
			})
			for _, id := range []string{"b", "c"} {
				schedule(id)
				require.Equal(t, id, receive(t, handled))
			}
			info, _, err := n.Client().Get(t.Context(), topic, "a")
			require.NoError(t, err)
			require.Equal(t, wakebell.StateRunning, info.State)
			require.Equal(t, 1, info.Attempts)
		})
	}
}

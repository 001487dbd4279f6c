package remote_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

// filtered are the calls without a right of their own: their responses are filtered by
// what the caller may read, and only its owner can release a turn.
var filtered = map[string]bool{
	"ListTopicsRequest": true, "ListGatesRequest": true, "ListQueuesRequest": true, "ListRecurringRequest": true,
	"ReleaseTurnRequest": true,
}

func rightsOf(t testing.TB, text string) *rights.Grants {
	t.Helper()
	granted, err := rights.Parse(text)
	require.NoError(t, err)
	return granted
}

func withRights(t testing.TB, text string) remote.Config {
	t.Helper()
	cfg := withMallory()
	cfg.Rights = rightsOf(t, text)
	return cfg
}

// about returns a request with the name in every field that names an object.
func about(t testing.TB, m protoreflect.MessageDescriptor, name string) proto.Message {
	t.Helper()
	request := message(t, m)
	for _, field := range []protoreflect.Name{"topic", "name", "gate"} {
		if f := m.Fields().ByName(field); f != nil {
			request.ProtoReflect().Set(f, protoreflect.ValueOfString(name))
		}
	}
	switch r := request.(type) {
	case *messages.ScheduleBatchRequest:
		r.Timers = []*messages.ScheduleRequest{{Topic: name}}
	case *messages.PutRecurringRequest:
		r.Schedules = []*messages.Recurring{{Name: name, Topic: name}}
	case *messages.GetOverviewsRequest:
		r.Topics = []string{name}
	case *messages.AskNodesRequest:
		r.Topics = []string{name}
	case *messages.ListTopicsRequest:
		r.Discover = false
	}
	return request
}

// A request that is missing in the table is refused to a principal with all rights. A
// request without needs is permitted to a principal without rights.
func TestEveryRequestIsInTableOfRights(t *testing.T) {
	t.Parallel()
	n := serve(t, withRights(t, "tests * *"))
	name := redistest.Name(t)
	require.NotEmpty(t, callsOf())
	for call, m := range callsOf() {
		err := n.call(t, secret, message(t, m.Input()))
		require.NotContains(t, status.Convert(err).Message(), "forbidden", call)
		err = n.call(t, malloryToken, about(t, m.Input(), name))
		if !filtered[call] {
			require.Equal(t, codes.PermissionDenied, status.Code(err), "%s: %v", call, err)
			require.NotContains(t, status.Convert(err).Message(), "nothing allows", call)
		}
	}
	commands := (&messages.Command{}).ProtoReflect().Descriptor().Fields()
	mine, mallorys := talk(t, n, secret), talk(t, n, malloryToken)
	for i := range commands.Len() {
		m := commands.Get(i).Message()
		if m.Fields().ByName("request") == nil || filtered[string(m.Name())] {
			continue // Verdicts are not answered
		}
		if fault, failed := mine.ask(message(t, m)).(*messages.Error); failed {
			require.NotEqual(t, messages.Code_CODE_FORBIDDEN, fault.GetCode(), m.Name())
		}
		fault := mallorys.refused(messages.Code_CODE_FORBIDDEN, about(t, m, name))
		require.NotContains(t, fault.GetMessage(), "nothing allows", m.Name())
	}
}

// Every entry point enforces rights: a right to one name does not permit another.
func TestEveryEntryPointEnforcesRights(t *testing.T) {
	t.Parallel()
	allowed, other := redistest.Name(t), redistest.Name(t)
	n := serve(t, withRights(t, "mallory * topic:"+allowed+" queue:"+allowed+" gate:"+allowed+" schedule:"+allowed))
	c, ctx := dialAs(t, n, malloryToken), t.Context()
	try := func(name string) map[string]error {
		bells := wakebell.NewTopic[string](name)
		_, scheduled := bells.Schedule(ctx, c, "x", wakebell.ID("a"), wakebell.In(time.Hour))
		_, counted := c.Stats(ctx, name)
		_, published := queue.New[string](name).Publish(ctx, c.Queues(), "x")
		_, looked := c.Queues().Stats(ctx, wakebelltype.QueueKeys{Name: name})
		_, purged := c.Queues().Purge(ctx, wakebelltype.QueueKeys{Name: name}, false)
		put := c.Schedules().Put(ctx, bells.Recurring(name, recurring.Rule{Every: time.Hour}, "x"))
		_, previewed := c.Schedules().Preview(ctx, name, 1)
		_, paused := c.Pause(ctx, name, "", "")
		_, shown := c.Gates().Show(ctx, name)
		taken := c.Gates().With(ctx, name, func(context.Context, uint64) error { return nil })
		return map[string]error{
			"schedule": scheduled, "stats": counted, "publish": published, "queue stats": looked, "purge": purged, "put": put,
			"preview": previewed, "pause": paused, "gate show": shown, "turn": taken,
		}
	}
	for what, err := range try(allowed) {
		require.NoError(t, err, what)
	}
	for what, err := range try(other) {
		require.ErrorIs(t, err, wakebell.ErrForbidden, what)
	}
	_, err := wakebell.NewTopic[string](other).Schedule(ctx, n.Client(), "x", wakebell.In(time.Hour))
	require.NoError(t, err, "the node's own client has no principal")
	ended := c.Subscribe(ctx, remote.Subscription{Topic: other, Name: "s"}, func(context.Context, *messages.Lease) error { return nil })
	require.ErrorIs(t, ended, wakebell.ErrForbidden)
	// A schedule that runs on a topic needs a right to the topic as well.
	err = c.Schedules().Put(ctx, wakebell.NewTopic[string](other).Recurring(allowed, recurring.Rule{Every: time.Hour}, "x"))
	require.ErrorIs(t, err, wakebell.ErrForbidden)
	require.NoError(t, c.Schedules().Delete(ctx, allowed))
}

// The right to a topic does not include the queue of the same name, nor the reverse,
// even while one of them has a subscription.
func TestRightToTopicIsNotOneToQueueOfItsName(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	cfg := withMallory()
	cfg.Rights = rightsOf(t, "mallory handle queue:"+name+"\ntests handle topic:"+name)
	n := serve(t, cfg)
	asQueue := func() *messages.SubscribeRequest {
		m := subscription(name, 10)
		m.Queue = &messages.Queue{}
		return m
	}
	_, err := wakebell.NewTopic[string](name).Schedule(t.Context(), n.Client(), "timer")
	require.NoError(t, err)
	mallory, tests := talk(t, n, malloryToken), talk(t, n, secret)
	mallory.refused(messages.Code_CODE_FORBIDDEN, subscription(name, 10))
	tests.refused(messages.Code_CODE_FORBIDDEN, asQueue())
	require.IsType(t, &messages.SubscribeResponse{}, mallory.ask(asQueue()))
	tests.refused(messages.Code_CODE_CONFLICT, subscription(name, 10))
	_, err = queue.New[string](name).Publish(t.Context(), n.Client().Queues(), "message")
	require.NoError(t, err)
	leases, ok := mallory.replies()[0].(*messages.Leases)
	require.True(t, ok)
	require.Len(t, leases.GetLeases(), 1)
	require.Contains(t, string(leases.GetLeases()[0].GetBody()), "message")
}

// Listings contain only what the caller may read.
func TestListingsAreFilteredByRights(t *testing.T) {
	t.Parallel()
	seen, hidden := redistest.Name(t), redistest.Name(t)
	n := serve(t, withRights(t, "mallory read topic:"+seen+" gate:"+seen+" schedule:"+seen))
	c, ctx := dialAs(t, n, malloryToken), t.Context()
	bells := wakebell.NewTopic[string](seen)
	for _, name := range []string{seen, hidden} {
		_, err := wakebell.NewTopic[string](name).Schedule(ctx, n.Client(), "x", wakebell.In(time.Hour))
		require.NoError(t, err)
		require.NoError(t, n.Client().Schedules().Put(ctx, bells.Recurring(name, recurring.Rule{Every: time.Hour}, "x")))
		turn, err := n.Gates().Acquire(ctx, name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = turn.Release(context.WithoutCancel(ctx)) })
		t.Cleanup(func() { _ = n.Client().Schedules().Delete(context.WithoutCancel(ctx), name) })
	}
	var found []string
	for topic, err := range c.Topics(ctx, false, wakebelltype.Page{}) {
		require.NoError(t, err)
		found = append(found, topic)
	}
	for gate, err := range c.Gates().List(ctx, wakebelltype.Page{}) {
		require.NoError(t, err)
		found = append(found, gate.Name)
	}
	for schedule, err := range c.Schedules().List(ctx, wakebelltype.Page{}) {
		require.NoError(t, err)
		found = append(found, schedule.Name)
	}
	require.Equal(t, []string{seen, seen, seen}, found)
	for _, err := range c.Topics(ctx, true, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrForbidden, "it scans all keys")
	}
}

// Removed rights end the operations and subscriptions that depend on them. A lease of such a
// subscription expires, and its timer is delivered to another subscriber then.
func TestRightsAreReplacedWhileNodeRuns(t *testing.T) {
	t.Parallel()
	cfg := withMallory()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(2 * time.Second)}
	topic := redistest.Name(t)
	cfg.Rights = rightsOf(t, "mallory * topic:"+topic+"\ntests * *")
	n := serve(t, cfg)
	k, c := talk(t, n, malloryToken), dialAs(t, n, malloryToken)
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(subscription(topic, 10)))
	events, ended := watch(t.Context(), c, topic)
	receive(t, events)
	_, err := wakebell.NewTopic[string](topic).Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	require.IsType(t, &messages.Leases{}, k.replies()[0])

	require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *")))
	require.ErrorIs(t, receive(t, ended), wakebell.ErrForbidden)
	require.IsType(t, &messages.LeasesEnded{}, k.replies()[0])
	k.refused(messages.Code_CODE_FORBIDDEN, subscription(topic, 10))
	handled := make(chan struct{}, 1)
	subscribe(t, dial(t, n), remote.Subscription{Topic: topic, Name: "honest"}, func(context.Context, *messages.Lease) error {
		handled <- struct{}{}
		return nil
	})
	receive(t, handled)

	require.ErrorIs(t, n.server.SetRights(nil), wakebell.ErrInvalid)
	require.ErrorIs(t, serve(t, withToken()).server.SetRights(cfg.Rights), wakebell.ErrInvalid)
}

// A subscriber without leases learns that its right is withdrawn, and is back by itself
// when it has the right again.
func TestIdleSubscribersReturnWithTheirRight(t *testing.T) {
	t.Parallel()
	cfg := withMallory()
	topic := redistest.Name(t)
	full := rightsOf(t, "mallory * topic:"+topic+"\ntests * *")
	cfg.Rights = full
	n := serve(t, cfg)
	handled := make(chan string, 1)
	subscribe(t, dialAs(t, n, malloryToken), remote.Subscription{Topic: topic, Name: "idle"}, func(_ context.Context, l *messages.Lease) error {
		handled <- l.GetId()
		return nil
	})
	bells := wakebell.NewTopic[string](topic)
	for round := range 3 {
		id := fmt.Sprint(round)
		_, err := bells.Schedule(t.Context(), n.Client(), "x", wakebell.ID(id))
		require.NoError(t, err)
		// The right may go before the outcome of the last round arrives: its timer comes again.
		for got := receive(t, handled); got != id; {
			got = receive(t, handled)
		}
		k := talk(t, n, malloryToken)
		idle := subscription(topic, 10)
		idle.Subscriber = "raw" + id
		require.IsType(t, &messages.SubscribeResponse{}, k.ask(idle))
		require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *")))
		ended, ok := k.replies()[0].(*messages.LeasesEnded)
		require.True(t, ok)
		require.Empty(t, ended.GetEnded())
		require.Equal(t, messages.Code_CODE_FORBIDDEN, ended.GetSubscription().GetCode())
		k.refused(messages.Code_CODE_FORBIDDEN, idle)
		require.NoError(t, n.server.SetRights(full))
	}
}

// The same rights apply to an actor behind protoactor's remote.
func TestRightsOfActor(t *testing.T) {
	t.Parallel()
	n := serve(t, withRights(t, "mallory * *"))
	s := meet(t, n) // the peer is "tests", which has no rights
	s.hello(s.address).welcomed()
	s.batch(s.batchOf(s.gateway(), s.schedule("x")))
	eventually(t, func() bool { return len(n.log.with("may not schedule topic")) == 1 })
	_, _, err := n.Client().Get(t.Context(), n.topic.Name(), "x")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}

func TestRightsAndOperatorsExcludeEachOther(t *testing.T) {
	t.Parallel()
	cfg := withRights(t, "tests * *")
	cfg.Operators = []string{"tests"}
	_, err := remote.Serve(serve(t, withToken()).System, cfg)
	require.Error(t, err)
}

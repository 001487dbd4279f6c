package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Ask calls an operation as a program without actors does, and returns the first
// answer.
func ask(ctx context.Context, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, request, answer proto.Message) error {
	name := "/wakebell.v1.Operations/" + string(m.Name())
	if !m.IsStreamingServer() {
		return conn.Invoke(ctx, name, request, answer)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, name)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(answer)
}

func TestEveryOperationIsServedToOperators(t *testing.T) {
	t.Parallel()
	n := serve(t, remote.Config{
		Tokens: map[string]string{secret: "ops", "another-" + secret: "billing"}, Operators: []string{"ops"},
	})
	conn := n.dial(t)
	methods := messages.File_messages_services_proto.Services().ByName("Operations").Methods()
	require.Positive(t, methods.Len())
	for i := range methods.Len() {
		m := methods.Get(i)
		require.Equal(t, m.Name()+"Request", m.Input().Name())
		require.Equal(t, m.Name()+"Response", m.Output().Name())
		as := func(token string) codes.Code {
			return status.Code(ask(bearing(t.Context(), token), conn, m, message(t, m.Input()), message(t, m.Output())))
		}
		require.Equal(t, codes.Unauthenticated, as(""), m.Name())
		require.Equal(t, codes.PermissionDenied, as("another-"+secret), m.Name())
		require.NotContains(t, []codes.Code{codes.Unimplemented, codes.Internal, codes.Unauthenticated, codes.PermissionDenied}, as(secret), m.Name())
	}
}

// collect reads a list to its end.
func collect[T any](t testing.TB, all func(func(T, error) bool)) (items []T) {
	t.Helper()
	for item, err := range all {
		require.NoError(t, err)
		items = append(items, item)
	}
	return items
}

// prefixed returns a node with a prefix.
func prefixed(t testing.TB, handlers ...wakebell.Handler) *node {
	t.Helper()
	n := &node{log: &lines{}, topic: wakebell.NewTopic[string]("orders"), conn: connection.Config{Prefix: redistest.Name(t) + ":"}}
	return n.start(t, withToken(), wakebell.Config{Handlers: handlers})
}

// The same operations on a local Client and over the network have the same results.
func TestRemoteTopicsEqualLocalTopics(t *testing.T) {
	t.Parallel()
	n := prefixed(t)
	name, ctx := n.topic.Name(), t.Context()
	full := n.Client().Prefix() + name
	for where, c := range map[string]wakebell.Operator{"here": n.Client(), "elsewhere": dial(t, n)} {
		for range 3 {
			_, err := n.topic.Schedule(ctx, n.Client(), "x", wakebell.In(time.Hour))
			require.NoError(t, err)
		}
		topics := collect(t, c.Topics(ctx, true, wakebelltype.Page{}))
		require.Contains(t, topics, map[string]string{"here": full, "elsewhere": name}[where])
		stats, err := c.Stats(ctx, name)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Stats{Total: 3, Pending: 3}, stats)

		set := wakebelltype.Settings{MaxConcurrent: 3, MaxLeaseAge: -1, RetryInitial: time.Second, MaxAttempts: 7}
		_, err = c.Retune(ctx, name, set)
		require.NoError(t, err)
		_, err = c.Retune(ctx, name, wakebelltype.Settings{MaxAttempts: -1})
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		ordered, err := c.PauseUntil(ctx, name, wakebelltype.Pause{By: "ann", Reason: "the bank is down", For: time.Hour})
		require.NoError(t, err)
		again, err := c.Control(ctx, name)
		require.NoError(t, err)
		require.Equal(t, ordered, again)
		require.Equal(t, "ann", again.PausedBy)
		require.Equal(t, again.PausedAt.Add(time.Hour), again.PausedUntil)
		require.Equal(t, set, again.Settings)

		overview, err := c.Overview(ctx, name, "never-used")
		require.NoError(t, err)
		require.Equal(t, again, overview[0].Control)
		require.EqualValues(t, 3, overview[0].Stats.Pending)
		require.True(t, overview[0].Stats.Paused)
		require.Equal(t, again.PausedUntil, overview[0].Stats.PausedUntil)
		require.Zero(t, overview[1].Stats)
		_, err = c.Overview(ctx, "")
		require.ErrorIs(t, err, wakebell.ErrInvalid)

		layout, err := c.Shards(ctx, name)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.ShardLayout{Shards: 1}, layout)
		require.Equal(t, 1, overview[0].Shards)
		layout, err = c.Divide(ctx, "divided-"+where, 4)
		require.NoError(t, err)
		require.Equal(t, 4, layout.Shards)
		require.True(t, layout.Moving)
		again4, err := c.Shards(ctx, "divided-"+where)
		require.NoError(t, err)
		require.Equal(t, layout, again4)
		for r, err := range c.Reshard(ctx, name, 1) {
			require.NoError(t, err)
			require.True(t, r.Done, "it has one shard")
			require.Equal(t, 1, r.Layout.Shards)
		}
		for _, err := range c.Reshard(ctx, name, 257) {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
		}
		_, err = c.Divide(ctx, name, 4)
		require.ErrorIs(t, err, wakebell.ErrInvalid, "it has timers")

		ordered, err = c.Resume(ctx, name)
		require.NoError(t, err)
		require.False(t, ordered.Paused)
		findings, err := c.Diagnose(ctx, name)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(findings, func(f wakebelltype.Finding) bool {
			return f.Check == "scripts" && f.Grade == wakebelltype.GradeGood && strings.HasSuffix(f.Topic, name)
		}), findings)
		removed, err := c.CancelAll(ctx, name)
		require.NoError(t, err)
		require.EqualValues(t, 3, removed)
		kept, err := c.RemoveTopic(ctx, name)
		require.NoError(t, err)
		require.True(t, kept.Existed)
		require.Contains(t, kept.Use, "key ", "overrides and dead letters are a use")
		require.NoError(t, c.Forget(ctx, name))
		removal, err := c.RemoveTopic(ctx, name)
		require.NoError(t, err)
		require.Zero(t, removal)
		require.ErrorIs(t, c.Forget(ctx, ""), wakebell.ErrInvalid)
	}
}

// A topic that cannot be read does not affect the listing of the others.
func TestBrokenTopicOverNetwork(t *testing.T) {
	t.Parallel()
	n := prefixed(t)
	require.NoError(t, redistest.Shared(t).Set(t.Context(), "timers_timeline:"+n.Client().Prefix()+"broken", "x", 0).Err())
	overview, err := dial(t, n).Overview(t.Context(), "broken", n.topic.Name())
	require.NoError(t, err)
	require.ErrorIs(t, overview[0].Err, wakebell.ErrWrongType)
	require.NoError(t, overview[1].Err)
}

// Get of a payload over the limit for reading returns ErrTooLarge over the network, with the
// rest of the timer.
func TestTimerThatIsTooLargeOverNetwork(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	redistest.PutTimer(t, redistest.Shared(t), n.topic.Name(), "large", make([]byte, 16<<20+1), float64(time.Now().Add(time.Hour).Unix()))
	info, content, err := dial(t, n).Get(t.Context(), n.topic.Name(), "large")
	require.ErrorIs(t, err, wakebell.ErrTooLarge)
	require.ErrorContains(t, err, "16777217 bytes, at most 16777216")
	here, _, err := n.Client().Get(t.Context(), n.topic.Name(), "large")
	require.ErrorIs(t, err, wakebell.ErrTooLarge)
	require.Equal(t, here, info)
	require.Equal(t, "large", info.ID)
	require.Zero(t, content)
	path := "/v1/topics/" + n.topic.Name() + "/timers/large"
	n.http(t, http.MethodGet, path, "").problem(t, http.StatusRequestEntityTooLarge, "too_large")
	require.Equal(t, "pending", n.http(t, http.MethodGet, path+"?without_content=true", "").ok(t)["timer"].(map[string]any)["state"])
}

func TestRemoteDeadLettersEqualLocalDeadLetters(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("orders")
	n := prefixed(t, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		return wakebell.Reject(fmt.Errorf("no %s", timer.Body))
	}))
	ctx, here, elsewhere := t.Context(), n.Client(), dial(t, n)
	gone := func() {
		eventually(t, func() bool {
			stats, err := here.Stats(ctx, topic.Name())
			return err == nil && stats.Total == 0
		})
	}
	for _, id := range []string{"a", "b", "c"} {
		_, err := topic.Schedule(ctx, here, id, wakebell.ID(id), wakebell.Header("k", "v"))
		require.NoError(t, err)
		gone()
	}
	// Another client writes what a message cannot represent.
	redistest.PutTimer(t, redistest.Shared(t), here.Prefix()+topic.Name(), "d\xff", []byte("d"), 0)
	gone()
	_, err := here.Pause(ctx, topic.Name(), "", "") // so that redriven timers stay
	require.NoError(t, err)
	letters := collect(t, here.DeadLetters(ctx, topic.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}))
	require.Len(t, letters, 4)
	for i, d := range collect(t, elsewhere.DeadLetters(ctx, topic.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{})) {
		want := letters[i]
		want.Topic = topic.Name()
		for _, text := range []*string{&want.ID, &want.Content.CorrelationID} {
			*text = strings.ToValidUTF8(*text, "\uFFFD")
		}
		require.Equal(t, want, d)
	}
	last, err := elsewhere.LastDead(ctx, topic.Name(), 2)
	require.NoError(t, err)
	require.Equal(t, letters[2].Entry, last[0].Entry)
	one, err := elsewhere.DeadLetter(ctx, topic.Name(), letters[1].Entry)
	require.NoError(t, err)
	require.Equal(t, "b", one.ID)
	_, err = elsewhere.DeadLetter(ctx, topic.Name(), "1-1")
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	var told []wakebelltype.RedrivenLetter
	done, err := elsewhere.Redrive(ctx, topic.Name(), wakebelltype.RedriveOptions{
		Filter: wakebelltype.DeadFilter{NewerThan: time.Hour}, In: time.Hour, Rate: 10_000,
		Each: func(l wakebelltype.RedrivenLetter) { told = append(told, l) },
	})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.RedriveResult{Redriven: 4}, done)
	require.Equal(t, wakebelltype.RedrivenLetter{Entry: letters[0].Entry, ID: "a", Outcome: wakebelltype.RedriveSucceeded}, told[0])
	_, err = elsewhere.Redrive(ctx, topic.Name(), wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Entry: letters[0].Entry}})
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	_, err = elsewhere.Redrive(ctx, topic.Name(), wakebelltype.RedriveOptions{Rate: 20_000})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	deleted, err := elsewhere.DeleteDead(ctx, topic.Name(), wakebelltype.DeadFilter{})
	require.NoError(t, err)
	require.Zero(t, deleted)
}

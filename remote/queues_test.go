package remote_test

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // part of the name of a dead letter
	"encoding/hex"
	"errors"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

var broken = "\xff\xfe" + strings.Repeat("i", 30) // not UTF-8, and as long as an id

// all returns the elements of a list, as they are encoded.
func all[T any](t *testing.T, of iter.Seq2[T, error], travels func(*T)) (found []T) {
	t.Helper()
	for one, err := range of {
		require.NoError(t, err)
		travels(&one)
		found = append(found, one)
	}
	return found
}

func replaced(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// looksOnce is an Operator that cancels the wait of a drain after its first check.
type looksOnce struct {
	queue.Operator
	tooLate context.CancelCauseFunc
}

func (l looksOnce) Stats(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueStats, error) {
	defer l.tooLate(errors.New("too late"))
	return l.Operator.Stats(ctx, name)
}

// addDeadLetters adds dead letters as the Python peer writes them, oldest first.
func addDeadLetters(t *testing.T, name wakebelltype.QueueKeys, bodies ...string) {
	t.Helper()
	values := make([]any, len(bodies))
	for i, body := range bodies {
		values[i] = body
	}
	require.NoError(t, redistest.Shared(t).LPush(t.Context(), cmp.Or(name.DeadLetters, name.Name+"::dlq"), values...).Err())
}

func TestRemoteQueuesEqualLocalQueues(t *testing.T) {
	t.Parallel()
	n, rdb := serve(t, withToken()), redistest.Shared(t)
	name, ctx := wakebelltype.QueueKeys{Name: redistest.Name(t)}, t.Context()
	_, err := queue.New[[]byte](name.Name).PublishAll(ctx, n.Client().Queues(), []byte("text"), []byte("\xff\x00"))
	require.NoError(t, err)
	require.NoError(t, rdb.LPush(ctx, name.Name+"::pending",
		"\x1eRMQ1:nonsense\xff", `plain`, "\x1eRMQ1:"+`{"id":"`+broken+`","payload":"x"}`).Err())
	require.NoError(t, rdb.LPush(ctx, name.Name+"::processing", "held").Err())
	require.NoError(t, rdb.ZAdd(ctx, name.Name+"::processing:lease_deadlines", redis.Z{Score: 2e12, Member: "held"}).Err())
	require.NoError(t, rdb.HSet(ctx, name.Name+"::processing:delivery_counts", "held", 3).Err())
	require.NoError(t, rdb.LPush(ctx, name.Name+"::completed", "done").Err())

	here, elsewhere := queue.Operator(n.Client().Queues()), queue.Operator(dial(t, n).Queues())
	want, err := here.Stats(ctx, name)
	require.NoError(t, err)
	got, err := elsewhere.Stats(ctx, name)
	require.NoError(t, err)
	require.WithinDuration(t, want.Now, got.Now, time.Minute)
	require.False(t, want.Oldest.IsZero())
	got.Now = want.Now
	require.Equal(t, want, got)
	for running, n := range map[bool]int{false: 5, true: 1} {
		travels := func(m *wakebelltype.QueueMessage) { m.ID, m.Fault = replaced(m.ID), replaced(m.Fault) }
		want := all(t, here.Messages(ctx, name, running, wakebelltype.Page{}), travels)
		require.Len(t, want, n)
		require.Equal(t, want, all(t, elsewhere.Messages(ctx, name, running, wakebelltype.Page{}), func(*wakebelltype.QueueMessage) {}))
	}
	count, err := elsewhere.PurgeKept(ctx, name)
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
	count, err = elsewhere.Purge(ctx, name, false)
	require.NoError(t, err)
	require.EqualValues(t, 5, count)
	hurried, tooLate := context.WithCancelCause(ctx)
	left, err := queue.Drain(hurried, looksOnce{elsewhere, tooLate}, name)
	require.ErrorContains(t, err, "too late")
	require.EqualValues(t, 1, left.Processing)
	count, err = elsewhere.Purge(ctx, name, true)
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
	_, err = queue.Drain(ctx, elsewhere, name)
	require.NoError(t, err)
}

func TestRemoteDeadLettersOfQueuesEqualLocalOnes(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	name, ctx := wakebelltype.QueueKeys{Name: redistest.Name(t)}, t.Context()
	here, elsewhere := queue.Operator(n.Client().Queues()), queue.Operator(dial(t, n).Queues())
	addDeadLetters(t, name, "first", "\xff\x00", "last")
	hash := sha1.Sum([]byte("lastlast")) //nolint:gosec // the fingerprint of a payload
	fingerprint := "4:" + hex.EncodeToString(hash[:8])
	rdb, ours := redistest.Shared(t), name.Name+"::wakebell:"
	require.NoError(t, rdb.ZAdd(ctx, ours+"places", redis.Z{Score: 1, Member: "1"}).Err())
	require.NoError(t, rdb.HSet(ctx, ours+"records", "", "3 "+fingerprint, "1", fingerprint+" 1700000000.5 7 2\n\xfe1no\xfd!").Err())

	travels := func(l *wakebelltype.QueueDeadLetter) {
		l.Entry, l.ID, l.Reason = replaced(l.Entry), replaced(l.ID), replaced(l.Reason)
	}
	for page := (wakebelltype.Page{}); ; {
		want := all(t, here.DeadLetters(ctx, name, page), travels)
		require.Equal(t, want, all(t, elsewhere.DeadLetters(ctx, name, page), func(*wakebelltype.QueueDeadLetter) {}))
		if len(want) == 0 {
			break
		}
		if len(want) == 1 {
			require.Equal(t, 7, want[0].Deliveries, "it has a record")
		}
		page.After = want[0].Cursor
	}
	for where, c := range map[string]queue.Operator{"here": here, "elsewhere": elsewhere} {
		for _, err := range c.DeadLetters(ctx, name, wakebelltype.Page{Limit: -1}) {
			require.ErrorIs(t, err, wakebell.ErrInvalid, where)
		}
		_, err := c.DeadLetter(ctx, name, "missing")
		require.ErrorIs(t, err, wakebell.ErrNotFound, where)
		_, err = c.DeadLetter(ctx, name, "")
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
		_, err = c.Stats(ctx, wakebelltype.QueueKeys{Name: "a::b"})
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
		_, err = c.DeleteDeadLetters(ctx, wakebelltype.QueueKeys{})
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
		_, _, err = c.RedriveDeadLetter(ctx, name, wakebelltype.QueueDeadLetter{}, queue.RedriveOptions{Window: -1})
		require.ErrorIs(t, err, wakebell.ErrInvalid, where)
	}
	_, err := elsewhere.Stats(ctx, wakebelltype.QueueKeys{Name: "\xff"})
	require.ErrorIs(t, err, wakebell.ErrInvalid, "it does not travel")
	for _, err := range elsewhere.DeadLetters(ctx, wakebelltype.QueueKeys{Name: "\xff"}, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
	letters := all(t, elsewhere.DeadLetters(ctx, name, wakebelltype.Page{}), func(*wakebelltype.QueueDeadLetter) {})
	one, err := elsewhere.DeadLetter(ctx, name, letters[1].Entry)
	require.NoError(t, err)
	letters[1].Cursor = "" // only listings set it
	letters[1].Cursor = "" // only listings set it
	require.Equal(t, letters[1], one)
	outcome, id, err := elsewhere.RedriveDeadLetter(ctx, name, one, queue.RedriveOptions{})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
	again := all(t, here.Messages(ctx, name, false, wakebelltype.Page{}), func(*wakebelltype.QueueMessage) {})
	require.Equal(t, []string{id, "\xff\x00"}, []string{again[0].ID, string(again[0].Payload)})
	outcome, _, err = elsewhere.RedriveDeadLetter(ctx, name, one, queue.RedriveOptions{})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.QueueRedriveAbsent, outcome)
	count, err := elsewhere.DeleteDeadLetters(ctx, name, letters...) // including the undecodable one
	require.NoError(t, err)
	require.Equal(t, 2, count)
}

// The caller supplies the deduplication keys.
func TestQueueIsRedrivenOverNetwork(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, ctx := dial(t, n), t.Context()
	orders := queue.New[string](redistest.Name(t), queue.DeduplicateBy(func(s string) string { return s }), queue.DeduplicationWindow(time.Minute))
	_, err := orders.Publish(ctx, n.Client().Queues(), "taken")
	require.NoError(t, err)
	free := []string{"\xff"}
	for i := range 2 * 100 { // more than one page
		free = append(free, strconv.Itoa(i))
	}
	addDeadLetters(t, orders.Keys(), append([]string{"taken"}, free...)...)
	redriven, err := queue.Redrive(ctx, c.Queues(), orders.Keys(), orders.RedriveOptions())
	require.NoError(t, err)
	require.EqualValues(t, len(free), redriven)
	st, err := c.Queues().Stats(ctx, orders.Keys())
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Dead, "whose key is taken")
	fresh, err := orders.Publish(ctx, c.Queues(), "7")
	require.NoError(t, err)
	require.False(t, fresh, "it has its key again")
	ttl := redistest.Shared(t).PTTL(ctx, orders.Name()+"::deduplication::7").Val()
	require.LessOrEqual(t, ttl, time.Minute)
}

func TestManyDeadLettersOfQueueAreDeletedOverNetwork(t *testing.T) {
	t.Parallel()
	name, cfg := wakebelltype.QueueKeys{Name: redistest.Name(t), DeadLetters: redistest.Name(t) + "::dlq"}, withToken()
	cfg.Queues = []wakebelltype.QueueKeys{name}
	n := serve(t, cfg)
	c, ctx := dial(t, n), t.Context()
	bodies := make([]string, 2100)
	for i := range bodies {
		bodies[i] = strconv.Itoa(i)
	}
	for range 3 {
		bodies = append(bodies, strings.Repeat("x", 700_000)+strconv.Itoa(len(bodies)))
	}
	addDeadLetters(t, name, bodies...)
	letters := all(t, c.Queues().DeadLetters(ctx, name, wakebelltype.Page{}), func(*wakebelltype.QueueDeadLetter) {})
	require.Len(t, letters, len(bodies))
	for _, want := range []int{len(bodies), 0} {
		count, err := c.Queues().DeleteDeadLetters(ctx, name, letters...)
		require.NoError(t, err)
		require.Equal(t, want, count)
	}
	request := &messages.DeleteQueueDeadLettersRequest{Name: name.Name, DeadLetters: make([]*messages.QueueDeadLetter, 1001)}
	for i := range request.DeadLetters {
		request.DeadLetters[i] = &messages.QueueDeadLetter{Entry: "x"}
	}
	err := n.dial(t).Invoke(bearing(ctx, secret), rpc.Operations_DeleteQueueDeadLetters_FullMethodName, request, &messages.DeleteQueueDeadLettersResponse{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "letters")
}

// A node that reads listings from replicas asks the masters for Redrive and Drain, as a local
// client does: here the replica has received nothing yet.
func TestRedriveAndDrainOfNodeDoNotReadFromReplicas(t *testing.T) {
	t.Parallel()
	n := &node{log: &lines{}, conn: connection.Config{ReadFrom: redistest.Start(t).Client(t)}}
	n.start(t, withToken(), wakebell.Config{})
	queues, name := dial(t, n).Queues(), wakebelltype.QueueKeys{Name: redistest.Name(t)}
	require.NoError(t, redistest.Shared(t).LPush(t.Context(), name.Name+"::dlq", "a", "b").Err())
	st, err := queues.Stats(t.Context(), name)
	require.NoError(t, err)
	require.Zero(t, st.Dead, "the replica is behind")
	redriven, err := queue.Redrive(t.Context(), queues, name, queue.RedriveOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, redriven)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	left, err := queue.Drain(ctx, looked{queues, stop}, name)
	require.ErrorIs(t, err, context.Canceled, "two messages wait")
	require.EqualValues(t, 2, left.Pending)
}

// looked calls then after it has read statistics.
type looked struct {
	queue.Operator
	then func()
}

func (l looked) Stats(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueStats, error) {
	defer l.then()
	return l.Operator.Stats(ctx, name)
}

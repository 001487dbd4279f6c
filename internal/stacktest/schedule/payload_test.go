package schedule_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func payloadKey(t testing.TB, id string) payload.Key {
	t.Helper()
	k, err := payload.NewKey(id, bytes.Repeat([]byte{id[0]}, 32))
	require.NoError(t, err)
	return k
}

// bucket is a payload.Store.
type bucket struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (b *bucket) Put(_ context.Context, key string, body []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files == nil {
		b.files = map[string][]byte{}
	}
	b.files[key] = bytes.Clone(body)
	return nil
}

func (b *bucket) Get(_ context.Context, key string, _ int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if body, ok := b.files[key]; ok {
		return body, nil
	}
	return nil, errors.New("no such file")
}

func (b *bucket) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.files, key)
	return nil
}

func (b *bucket) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.files)
}

// TestPayloadsAreEncodedInRedisAndPlainInHandlers covers timers, messages, runs,
// reminders and forwarded leases under a prefix. Middleware sees plain bodies.
func TestPayloadsAreEncodedInRedisAndPlainInHandlers(t *testing.T) {
	t.Parallel()
	const word = "confidential "
	body := strings.Repeat(word, 500)
	topic, runs, leases, q := wakebell.NewTopic[string]("topic"), wakebell.NewTopic[string]("runs"), wakebell.NewTopic[string]("leases"), queue.New[string]("queue")
	var mu sync.Mutex
	got := map[string]int{}
	count := func(name, received string) {
		mu.Lock()
		defer mu.Unlock()
		if received != body {
			name += " with another body"
		}
		got[name]++
	}
	store := &bucket{}
	wakebelltest.RunWith(t, connection.Config{
		Prefix: "shop:",
		Payloads: &payload.Chain{RequireEncryption: true, Codecs: []payload.Codec{
			payload.Compress(100), payload.Encrypt(payloadKey(t, "k1")), payload.ClaimCheck(store, 80),
		}},
	}, wakebell.Config{
		Middleware: []wakebell.Middleware{func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
			return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
				_, marked := t.Headers.Get(payload.Header)
				if marked || bytes.Contains(t.Raw, []byte(word)) {
					count("encoded in middleware", body)
				}
				return next(ctx, t)
			}
		}},
		Scheduler: &recurring.SchedulerConfig{
			Owner: "test", Schedules: []recurring.Schedule{runs.Recurring("daily", recurring.Rule{Every: 24 * time.Hour}, body)},
		},
		Reminders: &reminder.Config{Node: "n"},
		Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error {
				count("timer", t.Body)
				if t.Attempt == 1 {
					return wakebell.RetryIn(time.Second)
				}
				return nil
			}),
			wakebell.Handle(runs, func(_ context.Context, t wakebell.Timer[string]) error { count("run", t.Body); return nil }),
			wakebell.HandleQueue(q, func(_ context.Context, t wakebell.Timer[string]) error { count("message", t.Body); return nil }),
			wakebell.Forward(leases, wakebell.ToEachActor(actor.PropsFromFunc(func(c actor.Context) {
				if lease, ok := c.Message().(*messages.Lease); ok {
					received, _ := leases.Read(lease)
					count("lease", received)
					c.Respond(lease.Ack())
				}
			}))),
		},
	}, func(t *testing.T, w *wakebelltest.World) {
		c := w.Client()
		id, err := topic.Schedule(t.Context(), c, body, wakebell.In(time.Hour))
		require.NoError(t, err)
		stored, err := topic.Get(t.Context(), c, id)
		require.NoError(t, err)
		require.Equal(t, body, stored.Body)
		require.Contains(t, payload.Description(stored.Content.Headers, stored.Content.Body), "gzip, encrypted with key k1, ")
		_, err = leases.Schedule(t.Context(), c, body)
		require.NoError(t, err)
		_, err = q.Publish(t.Context(), c.Queues(), body)
		require.NoError(t, err)
		system := w.Nodes()[0].System()
		target, err := system.ActorSystem().Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*messages.Reminder); ok {
				var text wrapperspb.StringValue
				if m.GetMessage().UnmarshalTo(&text) == nil {
					count("reminder", text.GetValue())
				}
				ctx.Respond(m.Ack())
			}
		}), "cart")
		require.NoError(t, err)
		_, err = system.Reminders().Set(t.Context(), reminder.Actor(target), "once", reminder.In(time.Minute), wrapperspb.String(body))
		require.NoError(t, err)
		err = system.Reminders().SetEvery(t.Context(), reminder.Actor(target), "yearly", recurring.Rule{Every: 365 * 24 * time.Hour}, wrapperspb.String(body))
		require.NoError(t, err)
		for _, name := range []string{"once", "yearly"} {
			state, err := system.Reminders().Get(t.Context(), reminder.Actor(target), name)
			require.NoError(t, err)
			require.Contains(t, string(state.Message.GetValue()), word)
		}
		require.Positive(t, store.size())
		for _, key := range w.Redis().Keys(t.Context(), "*").Val() {
			require.NotContains(t, w.Redis().Dump(t.Context(), key).Val(), word, key)
		}
		w.Advance(48 * time.Hour)
		require.Empty(t, w.Dead("topic"))
		require.NoError(t, system.ActorSystem().Root.StopFuture(target).Wait())
	})
	require.Equal(t, map[string]int{"timer": 2, "lease": 1, "message": 1, "run": 2, "reminder": 1}, got)
	require.Zero(t, store.size(), "deleted after the ack")
}

// TestBodyWhoseKeyComesLaterIsRetried also has a node without Payloads: neither node
// loses what it cannot decode, on a topic or on a queue whose errors are final, alone and in
// batches.
func TestBodyWhoseKeyComesLaterIsRetried(t *testing.T) {
	t.Parallel()
	for _, batches := range []bool{false, true} {
		t.Run(fmt.Sprint("batches ", batches), func(t *testing.T) {
			t.Parallel()
			bodyWhoseKeyComesLater(t, batches)
		})
	}
}

func bodyWhoseKeyComesLater(t *testing.T, batches bool) {
	t.Helper()
	topic, q := wakebell.NewTopic[string]("topic"), queue.New[string]("queue")
	got := map[string]int{}
	handle := func(_ context.Context, t wakebell.Timer[string]) error {
		got[t.Body]++
		return nil
	}
	handleAll := func(ctx context.Context, all []wakebell.Timer[string]) (err error) {
		for _, t := range all {
			err = errors.Join(err, handle(ctx, t))
		}
		return err
	}
	backoff, ttl := wakebell.RetryBackoff(time.Second, time.Minute), wakebell.LeaseTTL(10*time.Second)
	handlers := []wakebell.Handler{wakebell.Handle(topic, handle, backoff), wakebell.HandleQueue(q, handle, wakebell.ErrorsAreFinal(), ttl)}
	if batches {
		handlers = []wakebell.Handler{wakebell.HandleBatch(topic, handleAll, backoff), wakebell.HandleQueueBatch(q, handleAll, wakebell.ErrorsAreFinal(), ttl)}
	}
	start := func(w *wakebelltest.World, chain *payload.Chain) *wakebelltest.Node {
		return w.StartWith(connection.Config{Payloads: chain, Logger: stacktest.Quiet}, wakebell.Config{Handlers: handlers})
	}
	wakebelltest.RunWith(t, connection.Config{Payloads: &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(payloadKey(t, "k2"))}}}, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		for name, chain := range map[string]*payload.Chain{"plain": nil, "old": {Codecs: []payload.Codec{payload.Encrypt(payloadKey(t, "k1"))}}} {
			_, err := topic.Schedule(t.Context(), w.Client(), name, wakebell.ID(name))
			require.NoError(t, err)
			_, err = q.Publish(t.Context(), w.Client().Queues(), name+" message")
			require.NoError(t, err)
			node := start(w, chain)
			w.Advance(20 * time.Second)
			info, _, err := w.Client().Get(t.Context(), "topic", name)
			require.NoError(t, err)
			require.Contains(t, info.LastError, map[string]string{"plain": "set Payloads", "old": `unknown key "k2"`}[name])
			require.NoError(t, node.Stop())
		}
		_, err := topic.Get(t.Context(), stacktest.Client(t, w.Redis(), connection.Config{}), "plain")
		require.ErrorIs(t, err, wakebell.ErrUnreadable)
		start(w, &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(payloadKey(t, "k1"), payloadKey(t, "k2"))}})
		w.Advance(5 * time.Minute)
	})
	require.Equal(t, map[string]int{"plain": 1, "old": 1, "plain message": 1, "old message": 1}, got)
}

// TestEncodedDeadLetterCanBeRedriven has a corrupt timer, and messages and timers that
// were rejected; claimed bodies stay until the ack.
func TestEncodedDeadLetterCanBeRedriven(t *testing.T) {
	t.Parallel()
	topic, q, store := wakebell.NewTopic[string]("topic"), queue.New[string]("queue"), &bucket{}
	var redriven bool
	got := map[string]int{}
	handle := func(_ context.Context, t wakebell.Timer[string]) error {
		if !redriven {
			return wakebell.Reject(errors.New("no"))
		}
		got[t.Body]++
		return nil
	}
	wakebelltest.RunWith(t, connection.Config{
		Payloads: &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(payloadKey(t, "k1")), payload.ClaimCheck(store, 0)}},
	}, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, handle), wakebell.HandleQueue(q, handle)},
	}, func(t *testing.T, w *wakebelltest.World) {
		_, err := topic.Schedule(t.Context(), w.Client(), "timer")
		require.NoError(t, err)
		_, err = q.Publish(t.Context(), w.Client().Queues(), "message")
		require.NoError(t, err)
		_, err = w.Client().Schedule(t.Context(), wakebell.NewTopic[[]byte]("topic").Draft([]byte("x"), wakebell.ID("corrupt"),
			wakebell.ContentType(payload.ContentType), wakebell.Header(payload.Header, "1;for=timer aes-256-gcm;key=k1")))
		require.NoError(t, err)
		w.Advance(time.Minute)
		require.Equal(t, 2, store.size())
		require.Len(t, w.Dead("topic"), 2)
		redriven = true
		_, err = w.Client().Redrive(t.Context(), "topic", wakebelltype.RedriveOptions{})
		require.NoError(t, err)
		for l, err := range w.Client().Queues().DeadLetters(t.Context(), q.Keys(), wakebelltype.Page{}) {
			require.NoError(t, err)
			_, _, err = w.Client().Queues().RedriveDeadLetter(t.Context(), q.Keys(), l, queue.RedriveOptions{})
			require.NoError(t, err)
		}
		w.Advance(time.Minute)
		dead := w.Dead("topic")
		require.Len(t, dead, 1)
		require.Equal(t, "corrupt", dead[0].ID)
		require.Contains(t, dead[0].Reason, "encoded body is corrupt")
	})
	require.Equal(t, map[string]int{"timer": 1, "message": 1}, got)
	require.Zero(t, store.size())
}

// TestBatchReceivesPlainBodies also has a timer of the batch that cannot be decoded yet.
func TestBatchReceivesPlainBodies(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("topic")
	var got []string
	handle := func(_ context.Context, timers []wakebell.Timer[string]) error {
		for _, t := range timers {
			got = append(got, t.Body)
		}
		return nil
	}
	store := &bucket{}
	chain := &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(payloadKey(t, "k1")), payload.ClaimCheck(store, 0)}}
	config := wakebell.Config{Handlers: []wakebell.Handler{wakebell.HandleBatch(topic, handle, wakebell.RetryBackoff(time.Hour, time.Hour))}}
	wakebelltest.RunWith(t, connection.Config{Payloads: chain}, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		for _, body := range []string{"a", "b"} {
			_, err := topic.Schedule(t.Context(), w.Client(), body, wakebell.ID(body))
			require.NoError(t, err)
		}
		node := w.StartWith(connection.Config{Logger: stacktest.Quiet}, config)
		w.Advance(time.Minute)
		require.Empty(t, got, "without keys")
		require.NoError(t, node.Stop())
		w.Start(config)
		w.Advance(3 * time.Hour)
	})
	require.ElementsMatch(t, []string{"a", "b"}, got)
	require.Zero(t, store.size())
}

func TestInvalidPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	chain := &payload.Chain{Codecs: []payload.Codec{payload.Encrypt()}}
	_, err := connection.New(redistest.Shared(t), connection.Config{Payloads: chain})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = connection.WithoutRedis(connection.Config{Payloads: chain})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

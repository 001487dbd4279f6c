package remote_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A subscriber resumes from its checkpoint, and gives its timer a result. The client encrypts
// both; the node has no key.
func TestSubscribersKeepCheckpointsProgressAndResults(t *testing.T) {
	t.Parallel()
	for _, encrypts := range []bool{false, true} {
		n := serve(t, withToken())
		var chain *payload.Chain
		if encrypts {
			key, err := payload.NewKey("k", bytes.Repeat([]byte{'k'}, 32))
			require.NoError(t, err)
			chain = &payload.Chain{RequireEncryption: true, Codecs: []payload.Codec{payload.Encrypt(key)}}
		}
		c, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet, Payloads: chain}), remote.DialConfig{
			Config: remote.Config{Token: secret}, DeadLink: time.Minute,
		})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		topic := n.topic.Name()
		bodies := make(chan string, 2)
		var answered error
		subscribe(t, c, remote.Subscription{Topic: topic, Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
			body, err := n.topic.Read(l)
			if err != nil {
				return wakebell.Reject(err)
			}
			bodies <- body
			if err := c.Progress(ctx, l, 0.5, "page 1"); err != nil {
				return wakebell.Reject(err)
			}
			if l.GetAttempt() > 1 {
				return c.Result(ctx, l, 42)
			}
			if err := c.Result(ctx, l, "of an attempt that fails"); err != nil {
				return wakebell.Reject(err)
			}
			answered = c.Checkpoint(ctx, l, strings.Repeat("x", 20<<20))
			if err := c.Checkpoint(ctx, l, "from page 2"); err != nil {
				return wakebell.Reject(err)
			}
			return wakebell.RetryIn(time.Millisecond)
		})
		_, err = n.topic.Schedule(t.Context(), c, "from page 1", wakebell.ID("a"), wakebell.Header("x-tenant", "acme"))
		require.NoError(t, err)
		require.Equal(t, "from page 1", receive(t, bodies))
		require.Equal(t, "from page 2", receive(t, bodies))
		require.ErrorIs(t, answered, wakebell.ErrInvalid, "no frame is large enough")
		ending, err := c.Wait(t.Context(), topic, "a")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.EndDone, ending.End, ending.Reason)
		require.Equal(t, 2, ending.Progress.Attempt)
		value, err := wakebell.ReadResult[int](t.Context(), c, topic, "a", ending.Result)
		require.NoError(t, err)
		require.Equal(t, 42, value)
		require.Equal(t, encrypts, string(ending.Result.Content.Body) != "42")
	}
}

// What a checkpoint leaves in Redis is the new body beside the headers of the timer.
func TestCheckpointOfSubscriberKeepsHeaders(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, topic := dial(t, n), n.topic.Name()
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
		same := &messages.Lease{Topic: l.GetTopic(), Id: l.GetId(), Delivery: l.GetDelivery()} // without headers
		var all sync.WaitGroup
		for range 20 { // at once
			all.Go(func() { _ = c.Checkpoint(ctx, same, "second") })
		}
		all.Wait()
		if err := c.Checkpoint(ctx, same, "third"); err != nil {
			return err
		}
		return wakebell.RetryIn(time.Hour)
	})
	_, err := n.topic.Schedule(t.Context(), c, "first", wakebell.ID("a"), wakebell.Header("x-tenant", "acme"), wakebell.CorrelationID("cause"))
	require.NoError(t, err)
	eventually(t, func() bool {
		info, _, err := n.Client().Get(t.Context(), topic, "a")
		return err == nil && info.State == wakebell.StateRetrying
	})
	_, content, err := n.Client().Get(t.Context(), topic, "a")
	require.NoError(t, err)
	require.Equal(t, "third", string(content.Body))
	require.Equal(t, "cause", content.CorrelationID)
	require.Equal(t, map[string]string{"x-tenant": "acme"}, content.Headers.Map())
}

func TestSubscribersKeepNothingOfOtherLeases(t *testing.T) {
	t.Parallel()
	n := serve(t, withMallory())
	c, topic := dial(t, n), n.topic.Name()
	other := dial(t, n)
	subscribe(t, other, remote.Subscription{Topic: topic, Name: "other", Credits: 1}, func(ctx context.Context, l *messages.Lease) error {
		<-ctx.Done()
		return ctx.Err()
	})
	leases, lost := make(chan *messages.Lease, 1), make(chan error, 2)
	_, err := n.topic.Schedule(t.Context(), c, "first", wakebell.ID("z"))
	require.NoError(t, err)
	eventually(t, func() bool {
		st, err := n.Client().Stats(t.Context(), topic)
		return err == nil && st.Leased == 1
	}, "the other one is busy")
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "s", Credits: 1}, func(ctx context.Context, l *messages.Lease) error {
		leases <- l
		<-ctx.Done()
		lost <- c.Checkpoint(context.WithoutCancel(ctx), l, "late")
		lost <- c.Result(context.WithoutCancel(ctx), l, "late")
		return nil
	})
	_, err = n.topic.Schedule(t.Context(), c, "first", wakebell.ID("a"))
	require.NoError(t, err)
	l := receive(t, leases)
	for _, ask := range []func() error{
		func() error { return other.Checkpoint(t.Context(), l, "foreign") },
		func() error {
			return c.Progress(t.Context(), &messages.Lease{Topic: topic, Id: "z", Delivery: l.GetDelivery()}, 1, "foreign")
		},
	} {
		require.ErrorIs(t, ask(), wakebell.ErrLeaseLost)
	}
	require.ErrorIs(t, c.Progress(t.Context(), l, 2, ""), wakebell.ErrInvalid)
	require.ErrorIs(t, c.Checkpoint(t.Context(), l, func() {}), wakebell.ErrInvalid)
	_, err = c.Cancel(t.Context(), topic, "a")
	require.NoError(t, err)
	for range 2 {
		require.ErrorIs(t, receive(t, lost), wakebell.ErrLeaseLost)
	}
}

// A node stores nothing for callers that do not hold the lease.
func TestKeepRequestsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withMallory())
	leases := "/v1/topics/" + n.topic.Name() + "/leases"
	n.scheduleOverHTTP(t, "a")
	token := n.claim(t, leases, `{"wait":"1m"}`)[0]["token"].(string)
	keep := func(verb, body string) answer { return n.http(t, "POST", leases+"/"+token+":"+verb, body) }
	do(t, n.request(t, "POST", leases+"/"+token+":checkpoint", malloryToken, `{"body":1}`)).problem(t, http.StatusConflict, "lease_lost")
	keep("progress", `{"fraction":1.5}`).problem(t, http.StatusBadRequest, "invalid")
	n.http(t, "POST", leases+"/none:progress", `{"fraction":1}`).problem(t, http.StatusBadRequest, "invalid")

	keep("progress", `{"fraction":0.5,"note":"half"}`).ok(t)
	keep("checkpoint", `{"body":{"page":2},"headers":{"x":"y"}}`).ok(t)
	_, content, err := n.Client().Get(t.Context(), n.topic.Name(), "a")
	require.NoError(t, err)
	require.JSONEq(t, `{"page":2}`, string(content.Body))
	require.Equal(t, map[string]string{"x": "y"}, content.Headers.Map())
	keep("ack", `{"result":{"body":{"rows":7}}}`).ok(t)
	report := "/v1/topics/" + n.topic.Name() + "/timers/a/report?wait=1m"
	got := n.http(t, "GET", report, "").ok(t)
	require.Equal(t, "done", got["end"])
	require.JSONEq(t, `{"rows":7}`, jsonOf(t, got["result"].(map[string]any)["content"].(map[string]any)["body"]))
	keep("checkpoint", `{"body":1}`).problem(t, http.StatusConflict, "lease_lost")

	n.scheduleOverHTTP(t, "b") // its result is too large
	token = n.claim(t, leases, `{"wait":"1m"}`)[0]["token"].(string)
	keep("ack", `{"result":{"body":"`+strings.Repeat("x", 5000)+`"}}`).ok(t)
	ending, err := n.Client().Wait(t.Context(), n.topic.Name(), "b")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.EndDead, ending.End)
	require.Contains(t, ending.Reason, "result: ")
}

func TestResultOfQueueIsRefused(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	name := n.topic.Name() + ".queue"
	errs := make(chan error, 2)
	subscribe(t, c, remote.Subscription{Queue: wakebelltype.QueueKeys{Name: name}, Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
		errs <- c.Result(ctx, l, 1)
		errs <- c.Checkpoint(ctx, l, "x")
		return nil
	})
	_, err := queue.New[string](name).Publish(t.Context(), c.Queues(), "x")
	require.NoError(t, err)
	require.ErrorIs(t, receive(t, errs), wakebell.ErrInvalid)
	require.ErrorIs(t, receive(t, errs), wakebell.ErrInvalid)
}

// The names in leases are those that the other requests of a subscriber take: without the
// prefix of the node.
func TestSubscribersKeepAtNodeWithPrefix(t *testing.T) {
	t.Parallel()
	n := prefixed(t)
	c, topic := dial(t, n), n.topic.Name()
	type seen struct {
		topic string
		ends  []wakebelltype.End
		err   error
	}
	joined := make(chan seen, 1)
	subscribe(t, c, remote.Subscription{Topic: topic, Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
		if l.GetId() == "part" {
			return errors.Join(c.Checkpoint(ctx, l, "again"), c.Progress(ctx, l, 1, ""), c.Result(ctx, l, 42))
		}
		s := seen{topic: l.GetTopic()}
		for part, err := range c.PartsOf(ctx, l) {
			s.ends, s.err = append(s.ends, part.End), errors.Join(s.err, err)
		}
		joined <- s
		return nil
	})
	_, err := c.Schedule(t.Context(), wakebell.Batch(n.topic.Draft("x", wakebell.ID("part"))).Then(n.topic.Draft("y", wakebell.ID("join"), wakebell.In(time.Hour)))...)
	require.NoError(t, err)
	require.Equal(t, seen{topic, []wakebelltype.End{wakebelltype.EndDone}, nil}, receive(t, joined))
	report, err := c.Report(t.Context(), topic, "part")
	require.NoError(t, err)
	value, err := wakebell.ReadResult[int](t.Context(), c, topic, "part", report.Result)
	require.NoError(t, err)
	require.Equal(t, 42, value)
}

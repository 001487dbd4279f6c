package layout_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestCheckpointSurvivesCrashAndReshard has encrypted bodies: one handler crashes after its
// checkpoint, and makes another one while the topic gets more shards; the other timer waits
// for its retry then.
func TestCheckpointSurvivesCrashAndReshard(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	key, err := payload.NewKey("k1", bytes.Repeat([]byte("k"), 32))
	require.NoError(t, err)
	conn := conntest.New(t, rdb, connection.Config{
		Payloads: &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(key)}, RequireEncryption: true}, Logger: stacktest.Quiet,
	})
	moving := make(chan struct{})
	handler := wakebell.HandleResult(topic, func(ctx context.Context, timer wakebell.Timer[string]) (string, error) {
		next := map[string]string{"start": "page 1", "page 1": "page 2"}[timer.Body]
		switch {
		case timer.Body == "page 1" && timer.ID == "crashes":
			<-moving
		case timer.Body != "start":
			return "read " + timer.Body, nil
		}
		switch err := timer.Checkpoint(ctx, next); {
		case err != nil:
			return "", wakebell.Reject(err)
		case timer.ID == "waits":
			return "", wakebell.RetryIn(time.Hour)
		case timer.Body == "start":
			panic("the handler crashes")
		}
		return "", errors.New("interrupted")
	}, wakebell.PanicBackoff(), wakebell.RetryBackoff(time.Second, time.Second))
	c := stacktest.Launch(t, stacktest.BuildOn(t, conn, wakebell.Config{Handlers: []wakebell.Handler{handler}})).Client()
	for _, id := range []string{"crashes", "waits"} {
		_, err := topic.Schedule(t.Context(), c, "start", wakebell.ID(id))
		require.NoError(t, err)
	}
	for _, id := range []string{"crashes", "waits"} {
		stacktest.Eventually(t, func() bool {
			timer, err := topic.Get(t.Context(), c, id)
			return err == nil && timer.Body == "page 1"
		}, id)
		raw, err := rdb.HGet(t.Context(), "timers_payloads:"+topic.Name(), id).Result()
		require.NoError(t, err)
		require.NotContains(t, raw, "page")
	}
	var begun sync.Once
	for _, err := range c.Reshard(t.Context(), topic.Name(), 4) {
		require.NoError(t, err)
		begun.Do(func() { close(moving) })
	}
	_, err = topic.RunNow(t.Context(), c, "waits")
	require.NoError(t, err)
	for id, want := range map[string]string{"crashes": "read page 2", "waits": "read page 1"} {
		ending, err := c.Wait(t.Context(), topic.Name(), id)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.EndDone, ending.End, id)
		value, err := wakebell.ReadResult[string](t.Context(), c, topic.Name(), id, ending.Result)
		require.NoError(t, err)
		require.Equal(t, want, value)
		require.NotContains(t, string(ending.Result.Content.Body), "read")
	}
}

// takeAway makes a timer due again while a node holds it.
func takeAway(t *testing.T, rdb *redis.Client, topic, id string) {
	t.Helper()
	timelines, err := rdb.Keys(t.Context(), "timers_timeline:"+topic+"*").Result()
	require.NoError(t, err)
	for _, key := range timelines {
		changed, err := rdb.ZAddArgs(t.Context(), key, redis.ZAddArgs{XX: true, Ch: true, Members: []redis.Z{{Score: 1, Member: id}}}).Result()
		require.NoError(t, err)
		if changed > 0 {
			return
		}
	}
	require.FailNow(t, "no shard has the timer")
}

// TestStaleHolderIsRefusedOnceAnotherNodeHasTimer lets another node take a timer whose handler has
// given a result already.
func TestStaleHolderIsRefusedOnceAnotherNodeHasTimer(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	written, lost, release := make(chan error, 1), make(chan struct{}), make(chan struct{})
	refused, taken := make(chan error, 2), make(chan string, 1)
	first := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
		ctx = context.WithoutCancel(ctx)
		written <- timer.Result(ctx, "first")
		<-lost
		refused <- timer.Checkpoint(ctx, "stale")
		refused <- timer.Result(ctx, "stale")
		return nil
	}, wakebell.Shards(4)))
	c := first.Client()
	_, err := topic.Schedule(t.Context(), c, "start", wakebell.ID("a"))
	require.NoError(t, err)
	require.NoError(t, stacktest.Receive(t, written))
	require.NoError(t, first.PauseLocal(topic.Name()))
	takeAway(t, rdb, topic.Name(), "a")
	stacktest.Serve(t, rdb, wakebell.HandleResult(topic, func(_ context.Context, timer wakebell.Timer[string]) (string, error) {
		taken <- timer.Body
		<-release
		return "second", nil
	}, wakebell.Shards(4)))
	require.Equal(t, "start", stacktest.Receive(t, taken))
	close(lost)
	require.ErrorIs(t, stacktest.Receive(t, refused), wakebell.ErrSuperseded)
	require.ErrorIs(t, stacktest.Receive(t, refused), wakebell.ErrSuperseded)
	stacktest.Eventually(t, func() bool {
		r, err := c.Report(t.Context(), topic.Name(), "a")
		return err == nil && r.Result == nil
	}, "the ack of the first run was refused")
	timer, err := topic.Get(t.Context(), c, "a")
	require.NoError(t, err)
	require.Equal(t, "start", timer.Body)
	close(release)
	ending, err := c.Wait(t.Context(), topic.Name(), "a")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.EndDone, ending.End)
	value, err := wakebell.ReadResult[string](t.Context(), c, topic.Name(), "a", ending.Result)
	require.NoError(t, err)
	require.Equal(t, "second", value)
}

// TestWaitSaysHowTimerOfShardsEnded waits before and after the end. The dead letter that OnDead
// receives has the body of the checkpoint.
func TestWaitSaysHowTimerOfShardsEnded(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	release := make(chan struct{})
	_, c, dead := stacktest.WithOnDead(t, rdb, wakebell.HandleResult(topic, func(ctx context.Context, timer wakebell.Timer[string]) (string, error) {
		switch <-release; timer.ID {
		case "cancelled":
			<-ctx.Done()
		case "dead":
			if err := timer.Checkpoint(ctx, "page 1"); err != nil {
				return "", err
			}
			return "", wakebell.Reject(errors.New("no such account"))
		}
		return "read", nil
	}, wakebell.Shards(4)))
	stacktest.Tail(t, c, topic.Name(), 1) // the node reports events from now on
	ends := map[string]wakebelltype.End{
		"done": wakebelltype.EndDone, "dead": wakebelltype.EndDead, "cancelled": wakebelltype.EndCancelled, "missing": wakebelltype.EndMissing,
	}
	answers := map[string]chan wakebell.Ending{}
	for id := range ends {
		if id != "missing" {
			_, err := topic.Schedule(t.Context(), c, "start", wakebell.ID(id))
			require.NoError(t, err)
		}
		answer := make(chan wakebell.Ending, 1)
		answers[id] = answer
		go func() {
			e, err := c.Wait(t.Context(), topic.Name(), id)
			if err != nil {
				e.Reason = err.Error()
			}
			answer <- e
		}()
	}
	stacktest.Eventually(t, func() bool { // the tail, and three that wait
		channels, err := rdb.PubSubChannels(t.Context(), "timers_events:"+topic.Name()+"*").Result()
		require.NoError(t, err)
		watching, err := rdb.PubSubNumSub(t.Context(), channels...).Result()
		require.NoError(t, err)
		for _, n := range watching {
			if n < 4 {
				return false
			}
		}
		return len(watching) > 0
	})
	close(release)
	_, err := topic.Cancel(t.Context(), c, "cancelled")
	require.NoError(t, err)
	for id, want := range ends {
		e := stacktest.Receive(t, answers[id])
		require.Equal(t, want, e.End, "%s: %s", id, e.Reason)
		require.Equal(t, id == "done", e.Result != nil, id)
	}
	require.Equal(t, `page 1`, string(stacktest.Receive(t, dead).Content.Body))
	ends["cancelled"] = wakebelltype.EndMissing // nothing is left of it
	for id, want := range ends {
		e, err := c.Wait(t.Context(), topic.Name(), id)
		require.NoError(t, err)
		require.Equal(t, want, e.End, id)
	}
}

package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A frame that the node refuses ends the link, and all its requests are sent again in the same
// frame.
func TestFrameOfManyRequestsFitsMaxMessage(t *testing.T) {
	t.Parallel()
	n, c := withSmallFrames(t)
	together(t, 40, func(ctx context.Context, i int) error {
		_, err := n.topic.Schedule(ctx, c, strings.Repeat("x", 20<<10), wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
		return err
	})
}

func TestBatchWithManyHeadersIsDivided(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	var headers []wakebell.ScheduleOption
	for i := range 80 {
		headers = append(headers, wakebell.Header(fmt.Sprint("h", i), ""))
	}
	drafts := make([]wakebell.Draft, 1000)
	for i := range drafts {
		drafts[i] = n.topic.Draft("", append(headers, wakebell.In(time.Hour))...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stored, err := c.Schedule(ctx, drafts...)
	require.NoError(t, err)
	require.Len(t, stored, len(drafts))
}

func TestResultThatFitsNoFrameMakesDeadLetter(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var attempts atomic.Int64
	subscribing := make(chan error, 1)
	go func() {
		subscribing <- c.Subscribe(ctx, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
			attempts.Add(1)
			return c.Result(ctx, l, make([]byte, remote.DefaultMaxMessage))
		})
	}()
	eventually(t, func() bool {
		stats, err := n.Client().Stats(t.Context(), n.topic.Name())
		return err == nil && stats.Dead == 1
	})
	cancel()
	require.NoError(t, receive(t, subscribing))
	require.EqualValues(t, 1, attempts.Load())
}

// An answer that does not fit into a frame is an error of its call. It does not end the link.
func TestAnswerThatFitsNoFrameIsError(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	redistest.PutTimer(t, redistest.Shared(t), n.topic.Name(), "large", make([]byte, remote.DefaultMaxMessage), float64(time.Now().Add(time.Hour).Unix()))
	c := dial(t, n)
	info, _, err := c.Get(t.Context(), n.topic.Name(), "large")
	require.ErrorIs(t, err, wakebell.ErrTooLarge)
	require.ErrorContains(t, err, "MaxMessage, 8388608 bytes")
	require.Equal(t, "large", info.ID, "the rest of the timer fits")
}

// A timer that fits into no frame to a subscriber becomes a dead letter. The others are delivered.
func TestLeaseThatFitsNoFrameMakesDeadLetter(t *testing.T) {
	t.Parallel()
	n := &node{log: &lines{}, topic: wakebell.NewTopic[string](redistest.Name(t)), conn: connection.Config{Logger: quiet, PayloadLimit: 2 * remote.DefaultMaxMessage}}
	n.start(t, withToken(), wakebell.Config{})
	ctx := t.Context()
	_, err := n.topic.Schedule(ctx, n.Client(), strings.Repeat("x", remote.DefaultMaxMessage), wakebell.ID("large"))
	require.NoError(t, err)
	_, err = n.topic.Schedule(ctx, n.Client(), "small", wakebell.In(time.Millisecond))
	require.NoError(t, err)
	handled := make(chan string, 10)
	c := dial(t, n)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(_ context.Context, l *messages.Lease) error {
		handled <- string(l.GetBody())
		return nil
	})
	require.Equal(t, "small", receive(t, handled))
	eventually(t, func() bool {
		stats, err := n.Client().Stats(ctx, n.topic.Name())
		return err == nil && stats.Dead == 1 && stats.Total == 0
	})
	for dead, err := range n.Client().DeadLetters(ctx, n.topic.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Contains(t, dead.Reason, "MaxMessage")
	}
}

// Answers and leases that fit into MaxMessage one by one are not put into one frame that does not.
func TestFramesOfNodeFitMaxMessage(t *testing.T) {
	t.Parallel()
	n, c := withSmallFrames(t)
	const timers = 40
	for i := range timers {
		_, err := n.topic.Schedule(t.Context(), n.Client(), strings.Repeat("x", 10<<10),
			wakebell.ID(fmt.Sprint(i)), wakebell.Header("h", strings.Repeat("y", 10<<10)), wakebell.In(time.Hour))
		require.NoError(t, err)
	}
	together(t, timers, func(ctx context.Context, i int) error {
		_, _, err := c.Get(ctx, n.topic.Name(), fmt.Sprint(i))
		return err
	})
	for i := range timers {
		_, err := n.Client().RunNow(t.Context(), n.topic.Name(), fmt.Sprint(i))
		require.NoError(t, err)
	}
	handled := make(chan string, 10*timers)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s", Credits: timers}, func(_ context.Context, l *messages.Lease) error {
		handled <- l.GetId()
		return nil
	})
	for range timers {
		receive(t, handled)
	}
	stats, err := n.Client().Stats(t.Context(), n.topic.Name())
	require.NoError(t, err)
	require.Zero(t, stats.Dead)
	require.Empty(t, handled, "each was delivered once")
}

// withSmallFrames returns a node and a client with the least MaxMessage.
func withSmallFrames(t *testing.T) (*node, *remote.Client) {
	t.Helper()
	cfg := withToken()
	cfg.MaxMessage = 64 << 10
	n := serve(t, cfg)
	c, err := remote.Dial(t.Context(), n.address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config: remote.Config{Token: secret, MaxMessage: cfg.MaxMessage},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return n, c
}

// together makes calls at once, all of which must succeed.
func together(t *testing.T, calls int, do func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, calls)
	for i := range calls {
		all.Go(func() { errs[i] = do(ctx, i) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

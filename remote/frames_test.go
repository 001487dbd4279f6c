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
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// A frame that the node refuses ends the link, and all its requests are sent again in the same
// frame.

func TestFrameOfManyRequestsFitsMaxMessage(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.MaxMessage = 64 << 10
	n := serve(t, cfg)
	c, err := remote.Dial(t.Context(), n.address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config: remote.Config{Token: secret, MaxMessage: cfg.MaxMessage},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
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

package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The cases are the table of the package documentation.
func TestWhichErrorsMayBeRetried(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		wakebell.ErrUnavailable:    true,
		wakebell.ErrMemoryFull:     true,
		wakebell.ErrTooFewReplicas: true,
		context.DeadlineExceeded:   true,
		context.Canceled:           false,
		redis.ErrClosed:            false,
		wakebell.ErrInvalid:        false,
		wakebell.ErrNotFound:       false,
		wakebell.ErrDenied:         false,
		wakebell.ErrWrongType:      false,
		wakebell.ErrTooLarge:       false,
		wakebell.ErrUnsupported:    false,
		wakebell.ErrLeaseLost:      false,
		wakebell.ErrCancelled:      false,
		wakebell.ErrSuperseded:     false,
		wakebell.ErrSettled:        false,
		wakebell.ErrLeaseTooOld:    false,
		wakebell.ErrDraining:       false,
		wakebell.ErrStopped:        false,
		wakebell.ErrUnfinished:     false,
		wakebell.ErrNameTaken:      false,
		wakebell.ErrStarted:        false,
		wakebell.ErrNotRunning:     false,
		wakebell.ErrNoTopic:        false,
		wakebell.ErrTopicTaken:     false,
		wakebell.ErrUnreadable:     false,
		errors.New("another"):      false,
	} {
		require.Equal(t, want, wakebell.Retryable(fmt.Errorf("call: %w", err)), err)
	}
	require.False(t, wakebell.Retryable(nil))
	gaveUp := fmt.Errorf("%w: %w", context.Canceled, wakebell.ErrUnavailable)
	require.False(t, wakebell.Retryable(gaveUp), "a cancelled call is not retryable")
	closed := fmt.Errorf("%w: %w", wakebell.ErrUnavailable, redis.ErrClosed)
	require.False(t, wakebell.Retryable(closed), "a closed client is not retryable")
	require.True(t, wakebell.Retryable(fmt.Errorf("x: %w", &wakebelltype.ReplicasError{Want: 1})))
}

// Every call maps a Redis error to the same sentinel.
func TestCallsYieldErrorsOfTable(t *testing.T) {
	t.Parallel()
	rdb, server := redistest.Embedded(t, func(o *redis.Options) { o.MaxRetries = -1 })
	c := stacktest.Client(t, rdb, connection.Config{RetryFor: -1})
	topic := wakebell.NewTopic[string]("t")
	calls := map[string]func() error{
		"schedule":   func() error { _, err := topic.Schedule(t.Context(), c, "x"); return err },
		"cancel":     func() error { _, err := topic.Cancel(t.Context(), c, "x"); return err },
		"cancel all": func() error { _, err := c.CancelAll(t.Context(), "t"); return err },
		"forget":     func() error { return c.Forget(t.Context(), "t") },
		"get":        func() error { _, _, err := c.Get(t.Context(), "t", "x"); return err },
		"reschedule": func() error { _, err := c.Reschedule(t.Context(), "t", "x", wakebell.In(1)); return err },
		"run now":    func() error { _, err := c.RunNow(t.Context(), "t", "x"); return err },
		"stats":      func() error { _, err := c.Stats(t.Context(), "t"); return err },
		"control":    func() error { _, err := c.Control(t.Context(), "t"); return err },
		"pause":      func() error { _, err := c.Pause(t.Context(), "t", "", ""); return err },
		"resume":     func() error { _, err := c.Resume(t.Context(), "t"); return err },
		"retune":     func() error { _, err := c.Retune(t.Context(), "t", wakebelltype.Settings{}); return err },
		"redrive":    func() error { _, err := c.Redrive(t.Context(), "t", wakebelltype.RedriveOptions{}); return err },
		"delete":     func() error { _, err := c.DeleteDead(t.Context(), "t", wakebelltype.DeadFilter{}); return err },
		"dead":       func() error { _, err := c.DeadLetter(t.Context(), "t", "1-0"); return err },
		"list": func() error {
			for _, err := range c.List(t.Context(), "t", wakebell.Filter{}, wakebelltype.Page{}) {
				return err
			}
			return nil
		},
		"topics": func() error {
			for _, err := range c.Topics(t.Context(), true, wakebelltype.Page{}) {
				return err
			}
			return nil
		},
	}
	for reply, want := range map[string]error{
		"LOADING x":           wakebell.ErrUnavailable,
		"READONLY x":          wakebell.ErrUnavailable,
		"OOM x":               wakebell.ErrMemoryFull,
		"NOPERM x":            wakebell.ErrDenied,
		"WRONGTYPE x":         wakebell.ErrWrongType,
		"ERR unknown command": wakebell.ErrUnsupported,
	} {
		server.SetError(reply)
		for name, call := range calls {
			require.ErrorIs(t, call(), want, "%s after %s", name, reply)
		}
	}
}

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// kind is a source that has to pass the conformance tests.
type kind struct {
	name  string
	put   func(t *testing.T, c *wakebell.Client, body string)
	serve func(fn func(context.Context, wakebell.Timer[string]) error, opts ...wakebell.TuningOption) wakebell.Handler
	// numbers returns a handler of another body type on the same source.
	numbers func(fn func(context.Context, wakebell.Timer[int]) error) wakebell.Handler
	left    func(t *testing.T, c *wakebell.Client) int64
	// dead returns the dead letters, each as its body and its reason.
	dead func(t *testing.T, c *wakebell.Client) []string
}

func kinds() []kind {
	topic := wakebell.NewTopic[string]("here")
	mail := queue.New[string]("here")
	scheduled := 0
	return []kind{{
		name: "timers",
		put: func(t *testing.T, c *wakebell.Client, body string) {
			t.Helper()
			scheduled++ // timers of one instant are ordered by their ids
			_, err := topic.Schedule(t.Context(), c, body, wakebell.ID(fmt.Sprintf("%06d", scheduled)))
			require.NoError(t, err)
		},
		serve: func(fn func(context.Context, wakebell.Timer[string]) error, opts ...wakebell.TuningOption) wakebell.Handler {
			var options []wakebell.HandlerOption
			for _, opt := range opts {
				options = append(options, opt)
			}
			return wakebell.Handle(topic, fn, options...)
		},
		numbers: func(fn func(context.Context, wakebell.Timer[int]) error) wakebell.Handler {
			return wakebell.Handle(wakebell.NewTopic[int]("here"), fn)
		},
		left: func(t *testing.T, c *wakebell.Client) int64 {
			t.Helper()
			st, err := c.Stats(t.Context(), "here")
			require.NoError(t, err)
			return st.Total
		},
		dead: func(t *testing.T, c *wakebell.Client) (all []string) {
			t.Helper()
			for l, err := range c.DeadLetters(t.Context(), "here", wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
				require.NoError(t, err)
				all = append(all, string(l.Content.Body)+": "+l.Reason)
			}
			return all
		},
	}, {
		name: "queue",
		put: func(t *testing.T, c *wakebell.Client, body string) {
			t.Helper()
			fresh, err := mail.Publish(t.Context(), c.Queues(), body)
			require.NoError(t, err)
			require.True(t, fresh)
		},
		serve: func(fn func(context.Context, wakebell.Timer[string]) error, opts ...wakebell.TuningOption) wakebell.Handler {
			var options []wakebell.QueueHandlerOption
			for _, opt := range opts {
				options = append(options, opt)
			}
			return wakebell.HandleQueue(mail, fn, options...)
		},
		numbers: func(fn func(context.Context, wakebell.Timer[int]) error) wakebell.Handler {
			return wakebell.HandleQueue(queue.New[int]("here"), fn)
		},
		left: func(t *testing.T, c *wakebell.Client) int64 {
			t.Helper()
			st, err := c.Queues().Stats(t.Context(), mail.Keys())
			require.NoError(t, err)
			return st.Pending + st.Processing
		},
		dead: func(t *testing.T, c *wakebell.Client) (all []string) {
			t.Helper()
			for l, err := range c.Queues().DeadLetters(t.Context(), mail.Keys(), wakebelltype.Page{}) {
				require.NoError(t, err)
				all = append(all, string(l.Payload)+": "+l.Reason)
			}
			return all
		},
	}}
}

// conform runs a test in virtual time on each kind of source.
func conform(t *testing.T, test func(t *testing.T, k kind, w *wakebelltest.World)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) { test(t, k, w) })
		})
	}
}

// on starts a node with one handler.
func on(w *wakebelltest.World, h wakebell.Handler) *wakebelltest.Node {
	return w.Start(wakebell.Config{Handlers: []wakebell.Handler{h}, DrainTimeout: time.Second})
}

func TestConformanceEachMessageIsHandledOnceInOrder(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		var got []string
		on(w, k.serve(func(_ context.Context, m wakebell.Timer[string]) error {
			require.Equal(t, 1, m.Attempt)
			got = append(got, m.Body)
			return nil
		}, wakebell.MaxConcurrent(1)))
		var want []string
		for i := range 250 {
			want = append(want, fmt.Sprint(i))
			k.put(t, w.Client(), want[i])
		}
		w.Advance(time.Second)
		require.Equal(t, want, got)
		require.Zero(t, k.left(t, w.Client()))
	})
}

func TestConformanceVerdicts(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		var at []time.Duration // since the first attempt
		var began time.Time
		on(w, k.serve(func(_ context.Context, m wakebell.Timer[string]) error {
			if m.Body == "bad" {
				return wakebell.Reject(errors.New("no good"))
			}
			if m.Attempt == 1 {
				began = time.Now()
			}
			require.Equal(t, m.Attempt-1, m.Failures)
			at = append(at, time.Since(began).Truncate(100*time.Millisecond))
			switch m.Attempt {
			case 1:
				return errors.New("again")
			case 2:
				return wakebell.RetryIn(time.Minute)
			}
			return errors.New("too often")
		}, wakebell.MaxAttempts(3), wakebell.RetryBackoff(10*time.Second, 10*time.Second)))
		k.put(t, w.Client(), "bad")
		k.put(t, w.Client(), "always")
		w.Advance(5 * time.Minute)
		require.Len(t, at, 3)
		require.InDelta(t, 10*time.Second, at[1], float64(2*time.Second+200*time.Millisecond))
		require.InDelta(t, time.Minute, at[2]-at[1], float64(200*time.Millisecond))
		require.Equal(t, []string{"bad: no good", "always: too often"}, k.dead(t, w.Client()))
		require.Zero(t, k.left(t, w.Client()))
	})
}

func TestConformanceHeartbeatsExtendLease(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		handled := 0
		slow := k.serve(func(ctx context.Context, m wakebell.Timer[string]) error {
			<-time.After(10 * time.Minute)
			require.NoError(t, m.Extend(ctx))
			require.NoError(t, m.Settle(ctx, nil))
			require.ErrorIs(t, m.Settle(ctx, nil), wakebell.ErrSettled)
			handled++
			return errors.New("it does not count")
		}, wakebell.LeaseTTL(30*time.Second), wakebell.MaxLeaseAge(0))
		on(w, slow)
		on(w, slow)
		k.put(t, w.Client(), "x")
		w.Advance(time.Hour)
		require.Equal(t, 1, handled)
		require.Zero(t, k.left(t, w.Client()))
	})
}

func TestConformanceHungHandlerIsEnded(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		var causes []error
		on(w, k.serve(func(ctx context.Context, m wakebell.Timer[string]) error {
			if m.Attempt == 1 {
				<-ctx.Done()
				causes = append(causes, context.Cause(ctx))
			}
			return nil
		}, wakebell.MaxLeaseAge(time.Minute)))
		k.put(t, w.Client(), "x")
		w.Advance(5 * time.Minute)
		require.Len(t, causes, 1)
		require.ErrorIs(t, causes[0], wakebell.ErrLeaseTooOld)
		require.Zero(t, k.left(t, w.Client()))
	})
}

func TestConformanceCrashedHandlerIsRetriedAfterItsLease(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		var attempts []int
		var took []time.Duration
		began := time.Now()
		h := k.serve(func(ctx context.Context, m wakebell.Timer[string]) error {
			attempts, took = append(attempts, m.Attempt), append(took, time.Since(began).Round(time.Second))
			switch m.Attempt {
			case 1:
				panic("oh")
			case 2:
				<-ctx.Done() // the node dies
			}
			return nil
		}, wakebell.LeaseTTL(30*time.Second), wakebell.MaxPollingInterval(time.Second))
		first := on(w, h)
		k.put(t, w.Client(), "x")
		w.Advance(31 * time.Second)
		first.Crash()
		on(w, h)
		w.Advance(2 * time.Minute)
		require.Equal(t, []int{1, 2, 3}, attempts)
		require.GreaterOrEqual(t, took[1], 30*time.Second)
		require.GreaterOrEqual(t, took[2]-took[1], 29*time.Second)
		require.Zero(t, k.left(t, w.Client()))
	})
}

func TestConformanceDrainReleasesInOrder(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		first := on(w, k.serve(func(ctx context.Context, _ wakebell.Timer[string]) error {
			<-ctx.Done()
			return ctx.Err()
		}, wakebell.MaxConcurrent(3)))
		for _, body := range []string{"a", "b", "c", "d"} {
			k.put(t, w.Client(), body)
		}
		w.Advance(time.Second)
		require.NoError(t, first.Stop())
		var got []string
		on(w, k.serve(func(_ context.Context, m wakebell.Timer[string]) error {
			require.Equal(t, 1, m.Attempt, "a released claim does not count as an attempt")
			got = append(got, m.Body)
			return nil
		}, wakebell.MaxConcurrent(1)))
		w.Advance(time.Second)
		require.Equal(t, []string{"a", "b", "c", "d"}, got)
	})
}

func TestConformanceUnreadableBodyIsDead(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		on(w, k.numbers(func(context.Context, wakebell.Timer[int]) error { return nil }))
		k.put(t, w.Client(), "no number")
		w.Advance(time.Second)
		dead := k.dead(t, w.Client())
		require.Len(t, dead, 1)
		require.True(t, strings.HasPrefix(dead[0], "no number: body cannot be read"), dead[0])
	})
}

// A new message wakes an idle poller at every polling interval.
func TestConformanceNewMessageWakesPoller(t *testing.T) {
	conform(t, func(t *testing.T, k kind, w *wakebelltest.World) {
		var got []time.Duration
		on(w, k.serve(func(_ context.Context, m wakebell.Timer[string]) error {
			got = append(got, m.Lateness())
			return nil
		}, wakebell.PollingInterval(time.Hour), wakebell.MaxPollingInterval(time.Hour)))
		for i := range 5 {
			w.Advance(10 * time.Minute)
			k.put(t, w.Client(), fmt.Sprint(i))
			w.Advance(0)
			require.Len(t, got, i+1)
		}
		require.Less(t, slices.Max(got), 5*time.Millisecond)
	})
}

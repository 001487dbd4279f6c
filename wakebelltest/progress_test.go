package wakebelltest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
)

// job is the body of an import that can be resumed.
type job struct {
	Row int
	Pad string
}

var jobs = wakebell.NewTopic[job]("jobs")

// handles returns the configuration of a node with a handler of jobs.
func handles(h wakebell.Handler) wakebell.Config {
	return wakebell.Config{Handlers: []wakebell.Handler{h}}
}

// blobs is a store of large bodies.
type blobs struct {
	mu     sync.Mutex
	bodies map[string][]byte
}

func (b *blobs) Put(_ context.Context, key string, body []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bodies[key] = bytes.Clone(body)
	return nil
}

func (b *blobs) Get(_ context.Context, key string, _ int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if body, found := b.bodies[key]; found {
		return body, nil
	}
	return nil, errors.New("no such body")
}

func (b *blobs) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.bodies, key)
	return nil
}

func (b *blobs) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.bodies)
}

// encrypting returns payloads that are encrypted and stored in b if they are large.
func encrypting(t *testing.T, b *blobs) *payload.Chain {
	t.Helper()
	key, err := payload.NewKey("k1", bytes.Repeat([]byte("k"), 32))
	require.NoError(t, err)
	return &payload.Chain{Codecs: []payload.Codec{payload.Encrypt(key), payload.ClaimCheck(b, 500)}, RequireEncryption: true}
}

func TestLaterAttemptResumesFromCheckpoint(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(step func(context.Context, wakebell.Timer[job]) error) wakebell.Handler{
		"single": func(step func(context.Context, wakebell.Timer[job]) error) wakebell.Handler {
			return wakebell.Handle(jobs, step)
		},
		"batch": func(step func(context.Context, wakebell.Timer[job]) error) wakebell.Handler {
			return wakebell.HandleBatch(jobs, func(ctx context.Context, timers []wakebell.Timer[job]) error { return step(ctx, timers[0]) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []job
			store := &blobs{bodies: map[string][]byte{}}
			cfg := handles(handler(func(ctx context.Context, timer wakebell.Timer[job]) error {
				seen = append(seen, timer.Body)
				if tenant, _ := timer.Headers.Get("tenant"); tenant != "acme" || timer.CorrelationID != "c1" {
					return wakebell.Reject(errors.New("the headers are lost"))
				}
				switch timer.Attempt {
				case 1, 2: // one that the store of large bodies takes, and one that it does not
					next := job{Row: 10 * timer.Attempt, Pad: strings.Repeat("x", 2000*(2-timer.Attempt))}
					if err := timer.Checkpoint(ctx, next); err != nil {
						return wakebell.Reject(err)
					}
					return errors.New("interrupted")
				case 3:
					next := job{Row: 30, Pad: strings.Repeat("x", 2000)}
					if err := timer.Checkpoint(ctx, next); err != nil {
						return wakebell.Reject(err)
					}
				}
				return nil
			}))
			wakebelltest.RunWith(t, connection.Config{Payloads: encrypting(t, store)}, cfg, func(t *testing.T, w *wakebelltest.World) {
				_, err := jobs.Schedule(t.Context(), w.Client(), job{Pad: strings.Repeat("y", 2000)}, wakebell.ID("a"),
					wakebell.Header("tenant", "acme"), wakebell.CorrelationID("c1"))
				require.NoError(t, err)
				w.Advance(time.Hour)
				require.Empty(t, w.Dead("jobs"))
				require.Len(t, seen, 3)
				require.Equal(t, []int{0, 10, 20}, []int{seen[0].Row, seen[1].Row, seen[2].Row})
				require.Zero(t, store.count(), "bodies that were replaced or handled are deleted")
			})
		})
	}
}

func TestCheckpointIsBoundedAsScheduledBody(t *testing.T) {
	t.Parallel()
	var large, queued error
	cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
		large = timer.Checkpoint(ctx, job{Pad: strings.Repeat("x", 2000)})
		return nil
	}))
	mails := queue.New[string]("mails")
	cfg.Handlers = append(cfg.Handlers, wakebell.HandleQueue(mails, func(ctx context.Context, m wakebell.Timer[string]) error {
		queued = m.Progress(ctx, 0, "")
		return nil
	}))
	wakebelltest.RunWith(t, connection.Config{PayloadLimit: 1000}, cfg, func(t *testing.T, w *wakebelltest.World) {
		_, err := jobs.Schedule(t.Context(), w.Client(), job{})
		require.NoError(t, err)
		_, err = mails.Publish(t.Context(), w.Client().Queues(), "hello")
		require.NoError(t, err)
		w.Advance(time.Minute)
		require.ErrorIs(t, large, wakebell.ErrInvalid)
		require.ErrorContains(t, large, "the limit is 1000")
		require.ErrorIs(t, queued, wakebell.ErrInvalid)
	})
}

func TestStaleHolderWritesNothing(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]struct {
		how   func(ctx context.Context, c *wakebell.Client) error
		cause error
	}{
		"scheduled again": {func(ctx context.Context, c *wakebell.Client) error {
			_, err := jobs.Schedule(ctx, c, job{Row: 7}, wakebell.ID("a"), wakebell.In(time.Hour))
			return err
		}, wakebell.ErrSuperseded},
		"cancelled": {func(ctx context.Context, c *wakebell.Client) error {
			_, err := jobs.Cancel(ctx, c, "a")
			return err
		}, wakebell.ErrCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *wakebelltest.World
			var checkpoint, progress, result error
			cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
				if timer.Body.Row != 0 {
					return nil
				}
				ctx = context.WithoutCancel(ctx)
				if err := lose.how(ctx, w.Client()); err != nil {
					return err
				}
				checkpoint = timer.Checkpoint(ctx, job{Row: 1})
				progress = timer.Progress(ctx, 0.5, "")
				result = timer.Result(ctx, "stale")
				return nil
			}))
			wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, world *wakebelltest.World) {
				w = world
				w.Start(cfg)
				_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"))
				require.NoError(t, err)
				w.Advance(time.Minute)
				require.ErrorIs(t, checkpoint, lose.cause)
				require.ErrorIs(t, progress, lose.cause)
				require.ErrorIs(t, result, lose.cause)
				report, err := w.Client().Report(t.Context(), "jobs", "a")
				require.NoError(t, err)
				require.Zero(t, report)
				if errors.Is(lose.cause, wakebell.ErrSuperseded) {
					stored, err := jobs.Get(t.Context(), w.Client(), "a")
					require.NoError(t, err)
					require.Equal(t, job{Row: 7}, stored.Body)
				}
			})
		})
	}
}

// TestExtensionDoesNotRefuseCheckpoint checks that a handler writes with the token that its
// lease has after extensions.
func TestExtensionDoesNotRefuseCheckpoint(t *testing.T) {
	t.Parallel()
	var errs []error
	cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
		for row := range 50 {
			<-time.After(7 * time.Second)
			errs = append(errs, timer.Checkpoint(ctx, job{Row: row}), timer.Progress(ctx, float64(row)/50, ""))
		}
		return nil
	}))
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"))
		require.NoError(t, err)
		w.Advance(10 * time.Minute)
		require.Len(t, errs, 100)
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("jobs", "a").Outcome)
	})
}

func TestProgressIsThrottledAndEndsWithLast(t *testing.T) {
	t.Parallel()
	var w *wakebelltest.World
	var first, second, third wakebell.Report
	var invalid error
	cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
		errs := []error{timer.Progress(ctx, 0, "begins"), timer.Progress(ctx, 0.25, "page 1")}
		first, _ = w.Client().Report(ctx, "jobs", "a")
		<-time.After(1500 * time.Millisecond)
		errs = append(errs, timer.Progress(ctx, 0.5, "page 2"), timer.Progress(ctx, 0.75, "page 3"))
		second, _ = w.Client().Report(ctx, "jobs", "a")
		errs = append(errs, timer.Progress(ctx, 1, strings.Repeat("x", 300)))
		third, _ = w.Client().Report(ctx, "jobs", "a")
		invalid = timer.Progress(ctx, 1.1, "")
		return errors.Join(errs...)
	}, wakebell.KeepResults(time.Minute)))
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, world *wakebelltest.World) {
		w = world
		w.Start(cfg)
		_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"))
		require.NoError(t, err)
		w.Advance(10 * time.Second)
		require.Equal(t, "begins", first.Progress.Note)
		require.Equal(t, "page 2", second.Progress.Note)
		require.Equal(t, second, third)
		require.ErrorIs(t, invalid, wakebell.ErrInvalid)
		last, err := w.Client().Report(t.Context(), "jobs", "a")
		require.NoError(t, err)
		require.InDelta(t, 1, last.Progress.Fraction, 0)
		require.Equal(t, strings.Repeat("x", 256), last.Progress.Note)
		require.Equal(t, 1, last.Progress.Attempt)
		w.Advance(2 * time.Minute)
		last, err = w.Client().Report(t.Context(), "jobs", "a")
		require.NoError(t, err)
		require.Zero(t, last)
	})
}

// TestSettleKeepsWhatHandlerHasKept has handlers that settle their timers themselves: the verdict
// decides about the result, and not what they do afterwards.
func TestSettleKeepsWhatHandlerHasKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict error
		after   func() error
		result  bool
	}{
		"acknowledged":                 {nil, func() error { return nil }, true},
		"acknowledged before an error": {nil, func() error { return errors.New("ignored") }, true},
		"acknowledged before a panic":  {nil, func() error { panic("ignored") }, true},
		"rejected":                     {wakebell.Reject(errors.New("no")), func() error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var errs error
			cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
				errs = errors.Join(timer.Progress(ctx, 0, "begins"), timer.Progress(ctx, 1, "ends"), timer.Result(ctx, 42), timer.Settle(ctx, c.verdict))
				return c.after()
			}))
			wakebelltest.RunWith(t, connection.Config{Logger: slog.New(slog.DiscardHandler)}, cfg, func(t *testing.T, w *wakebelltest.World) {
				_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"))
				require.NoError(t, err)
				w.Advance(10 * time.Second)
				require.NoError(t, errs)
				report, err := w.Client().Report(t.Context(), "jobs", "a")
				require.NoError(t, err)
				require.Equal(t, c.result, report.Result != nil)
				require.Equal(t, "ends", report.Progress.Note)
			})
		})
	}
}

func TestFakeLeaseRecordsReports(t *testing.T) {
	t.Parallel()
	timer := wakebelltest.Timer(t, jobs, job{Row: 1}, wakebell.ID("a"))
	lease := wakebelltest.LeaseOf(timer.Meta)
	_, made := lease.LastCheckpoint()
	require.False(t, made)
	require.NoError(t, timer.Checkpoint(t.Context(), job{Row: 2}))
	require.NoError(t, timer.Progress(t.Context(), 0.5, "half"))
	require.NoError(t, timer.Result(t.Context(), "done"))
	content, made := lease.LastCheckpoint()
	require.True(t, made)
	require.Equal(t, job{Row: 2}, wakebelltest.Body[job](t, content))
	require.Equal(t, "half", lease.Report().Progress.Note)
	require.Equal(t, "done", wakebelltest.Body[string](t, lease.Report().Result.Content))
	lease.End(wakebell.ErrLeaseLost)
	require.ErrorIs(t, timer.Checkpoint(t.Context(), job{Row: 3}), wakebell.ErrLeaseLost)
	require.Error(t, wakebell.Timer[job]{}.Checkpoint(t.Context(), job{}))
}

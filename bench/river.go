package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const riverJobs = 30_000 // in a run

// riverArgs is a job of 100 bytes.
type riverArgs struct {
	Body string `json:"body"`
}

func (riverArgs) Kind() string { return "bench" }

var riverJob = riverArgs{Body: string(bytes.Repeat([]byte("x"), 89))} // and {"body":""}

// riverClient is River's client of a database without jobs.
type riverClient struct {
	*river.Client[pgx.Tx]

	server  *postgres
	handled atomic.Int64
}

// newRiver starts PostgreSQL if it does not run yet, and removes all jobs. If workers is
// above 0 the client handles jobs, and looks for new ones at most once in every pause; 0:
// River's default of 100 ms.
func newRiver(ctx context.Context, w *world, workers int, pause time.Duration) (*riverClient, error) {
	if err := w.startPostgres(ctx); err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(w.postgres.pool), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil { // nothing, when it is done
		return nil, err
	}
	c := &riverClient{server: w.postgres}
	if _, err := c.server.pool.Exec(ctx, "TRUNCATE river_job; DELETE FROM river_leader"); err != nil {
		return nil, err
	}
	cfg := &river.Config{Logger: quiet(), Workers: river.NewWorkers(), FetchCooldown: pause}
	if pause > 0 {
		cfg.FetchPollInterval = 10 * pause
	}
	river.AddWorker(cfg.Workers, river.WorkFunc(func(context.Context, *river.Job[riverArgs]) error {
		c.handled.Add(1)
		return nil
	}))
	if workers > 0 {
		cfg.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
	}
	c.Client, err = river.NewClient(riverpgxv5.New(c.server.pool), cfg)
	return c, err
}

// measure is that of the world, with the CPU time of PostgreSQL in place of that of Redis.
func (c *riverClient) measure(ctx context.Context, w *world, n int, work func() error) (sample, error) {
	before := c.server.cpu()
	s, err := w.measure(ctx, n, work)
	if err != nil {
		return nil, err
	}
	used := c.server.cpu() - before
	s[redisUS] = used.Seconds() * 1e6 / float64(n)
	s[othersBusy] = max(0, s[othersBusy]-used.Seconds()*s[rate]/float64(n)/float64(runtime.NumCPU()))
	delete(s, commandsPer)
	return s, nil
}

// completes has the client handle n jobs until PostgreSQL has all of them as completed.
func (c *riverClient) completes(ctx context.Context, n int, look time.Duration) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	return untilEvery(ctx, look, func() bool {
		if c.handled.Load() < int64(n) {
			return false
		}
		var open bool
		err := c.server.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')").Scan(&open)
		return err == nil && !open
	})
}

// insertMany inserts n jobs in batches, for the instants that at returns.
func (c *riverClient) insertMany(ctx context.Context, n, batch int, at func(i int) time.Time) error {
	for i := 0; i < n; i += batch {
		var jobs []river.InsertManyParams
		for k := i; k < min(i+batch, n); k++ {
			jobs = append(jobs, river.InsertManyParams{Args: riverJob, InsertOpts: &river.InsertOpts{ScheduledAt: at(k)}})
		}
		if _, err := c.InsertManyFast(ctx, jobs); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
	}
	return nil
}

// riverWorkers handles jobs by River that are due.
func riverWorkers(workers int, pause time.Duration) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		c, err := newRiver(ctx, w, workers, pause)
		if err != nil {
			return nil, err
		}
		n, now := w.many(riverJobs), time.Now()
		if err := c.insertMany(ctx, n, 5000, func(int) time.Time { return now }); err != nil {
			return nil, err
		}
		if _, err := c.server.pool.Exec(ctx, "ANALYZE river_job"); err != nil {
			return nil, err
		}
		s, err = c.measure(ctx, w, n, func() error { return c.completes(ctx, n, time.Millisecond) })
		return s, errors.Join(err, c.Stop(ctx))
	}
}

// steadyRiver has River handle jobs that are planned for instants evenly spread. It looks
// for due ones every 5 s; there is no setting for that.
func steadyRiver(perSecond int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		c, err := newRiver(ctx, w, 2000, 2*time.Millisecond)
		if err != nil {
			return nil, err
		}
		n := int(w.long(steadyFor).Seconds()) * perSecond
		start := time.Now().Add(steadyLead + time.Duration(n/15_000)*time.Second)
		if err := c.insertMany(ctx, n, 5000, func(i int) time.Time {
			return start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		}); err != nil {
			return nil, err
		}
		if err := wait(ctx, time.Until(start)-time.Second); err != nil {
			return nil, err
		}
		s, err = c.measure(ctx, w, n, func() error { return c.completes(ctx, n, steadyLook) })
		if err == nil {
			s[bothUS] = s[clientUS] + s[redisUS]
			delete(s, rate)
		}
		return s, errors.Join(err, c.Stop(ctx))
	}
}

// insertRiver inserts jobs one by one, by 50 callers.
func insertRiver(ctx context.Context, w *world) (sample, error) {
	c, err := newRiver(ctx, w, 0, 0)
	if err != nil {
		return nil, err
	}
	n := w.many(riverJobs)
	return c.measure(ctx, w, n, func() error {
		return calls(n, concurrency, func(int) error {
			_, err := c.Insert(ctx, riverJob, nil)
			return err
		})
	})
}

// insertRiverBatches inserts jobs in batches, by COPY.
func insertRiverBatches(size int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		c, err := newRiver(ctx, w, 0, 0)
		if err != nil {
			return nil, err
		}
		n, later := w.many(4*riverJobs), time.Now().Add(time.Hour)
		return c.measure(ctx, w, n, func() error {
			return c.insertMany(ctx, n, size, func(int) time.Time { return later })
		})
	}
}

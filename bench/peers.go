package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const asynqTasks = 30_000 // in a run

// asynqServer handles tasks by asynq with so many workers.
func asynqServer(concurrency int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := w.many(asynqTasks)
		loader := w.client(50)
		defer func() { _ = loader.Close() }()
		if err := enqueue(ctx, loader, n, 50); err != nil {
			return nil, err
		}
		rdb := redis.NewClient(&redis.Options{Addr: w.server.Addr, PoolSize: max(20, concurrency)})
		defer func() { _ = rdb.Close() }()
		server := asynq.NewServerFromRedisClient(rdb, asynq.Config{
			Concurrency: concurrency, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
		})
		var handled atomic.Int64
		work := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			handled.Add(1)
			return nil
		})
		s, err := w.measure(ctx, n, func() error {
			if err := server.Start(work); err != nil {
				return err
			}
			return until(ctx, func() bool { return handled.Load() >= int64(n) })
		})
		server.Shutdown()
		return s, err
	}
}

// enqueue has so many callers at a time enqueue n tasks of 100 bytes.
func enqueue(ctx context.Context, rdb *redis.Client, n, callers int) error {
	client := asynq.NewClientFromRedisClient(rdb)
	body := make([]byte, 100)
	return calls(n, callers, func(int) error {
		if _, err := client.EnqueueContext(ctx, asynq.NewTask("bench", body)); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		return nil
	})
}

// calls makes n calls from so many goroutines.
func calls(n, callers int, call func(i int) error) error {
	var next atomic.Int64
	errs := make(chan error, callers)
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				if err := call(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(errs)
	return <-errs
}

const (
	bullJobs = 30_000
	bullDir  = "bullmq" // beside the bench, where npm has installed it
)

// bullMQ runs BullMQ in a process of its own; part is what it is measured at,
// "add" or "handle".
func bullMQ(part string, concurrency int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if err := bullInstalled(); err != nil {
			return nil, err
		}
		return runBullMQ(ctx, w, part, w.many(bullJobs), concurrency)
	}
}

// steadyBullMQ has BullMQ handle jobs that are delayed to instants evenly spread.
func steadyBullMQ(perSecond int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if err := bullInstalled(); err != nil {
			return nil, err
		}
		s, err := runBullMQ(ctx, w, "handle", int(w.long(steadyFor).Seconds())*perSecond, 100, strconv.Itoa(perSecond))
		if err == nil {
			s[bothUS] = s[clientUS] + s[redisUS]
			delete(s, rate)
		}
		return s, err
	}
}

// bullInstalled returns why BullMQ cannot run here.
func bullInstalled() error {
	if _, err := exec.LookPath("node"); err != nil {
		return fmt.Errorf("%w: there is no Node", errAbsent)
	}
	if _, err := os.Stat(bullDir + "/node_modules/bullmq"); err != nil {
		return fmt.Errorf("%w: BullMQ is not installed (make bench-peers does it, from the folder of the bench)", errAbsent)
	}
	return nil
}

func runBullMQ(ctx context.Context, w *world, part string, jobs, concurrency int, more ...string) (sample, error) {
	_, port, err := net.SplitHostPort(w.server.Addr)
	if err != nil {
		return nil, err
	}
	args := append([]string{"bench.mjs", port, strconv.Itoa(jobs), strconv.Itoa(concurrency), strconv.Itoa(batchSize)}, more...)
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = bullDir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("bullmq: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	return bullFigures(out, part)
}

// bullFigures reads what bench.mjs prints.
func bullFigures(out []byte, part string) (sample, error) {
	var parts map[string]sample
	if err := json.Unmarshal(out, &parts); err != nil {
		return nil, fmt.Errorf("read the figures of bullmq: %w", err)
	}
	s, ok := parts[part]
	if !ok {
		return nil, fmt.Errorf("bullmq measured no %q", part)
	}
	delete(s, "seconds")
	return s, nil
}

const (
	fastTimers = 3_000
	fastScript = "faststream/bench.py"
)

// faststream handles timers with faststream-redis-timers, with its defaults or with a
// number of concurrent handlers.
func faststream(concurrency int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if err := exec.CommandContext(ctx, "python3", "-c", "import faststream_redis_timers").Run(); err != nil {
			return nil, fmt.Errorf("%w: python3 cannot import faststream_redis_timers", errAbsent)
		}
		_, port, err := net.SplitHostPort(w.server.Addr)
		if err != nil {
			return nil, err
		}
		n := w.many(fastTimers)
		if err := loadTimers(ctx, w, "faststream", n, 100); err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, "python3", fastScript, port, strconv.Itoa(n), strconv.Itoa(concurrency)).Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("faststream: %w: %s", err, exit.Stderr)
		}
		if err != nil {
			return nil, err
		}
		s := sample{}
		return s, json.Unmarshal(out, &s)
	}
}

package main

import (
	"context"
	"fmt"
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

package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/meter"
)

// The figures of a node with idle topics.
const (
	idleCommands    = "commands_per_s"   // that Redis ran per topic, including those of scripts
	idleCalls       = "calls_per_s"      // that the client sent per topic
	idleClient      = "client_share"     // of a core
	idleRedis       = "redis_share"      // of a core
	idleBytes       = "bytes_per_topic"  // of the client's memory
	idleGoroutines  = "goroutines_topic" // per topic
	idleConnections = "connections"      // of the client, in all
)

// idleWarmUp is the time until all topics poll at their longest interval.
const idleWarmUp = 25 * time.Second

// idleNode measures a node with n topics that have no timers.
func idleNode(n int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (_ sample, err error) {
		rdb := w.client(0)
		defer func() { _ = rdb.Close() }() // the figures are taken
		calls := meter.CountCalls(rdb)
		bytes, goroutines := usedMemory(), runtime.NumGoroutine()
		clients, err := connections(ctx, w)
		if err != nil {
			return nil, err
		}
		handlers := make([]wakebell.Handler, n)
		for i := range handlers {
			topic := wakebell.NewTopic[string](fmt.Sprintf("idle-%06d", i))
			handlers[i] = wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil })
		}
		sys, err := used{}.system(rdb, handlers...)
		if err != nil {
			return nil, err
		}
		if err := sys.Start(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if stopErr := sys.Stop(); err == nil {
				err = stopErr
			}
		}()
		if err := wait(ctx, idleWarmUp); err != nil {
			return nil, err
		}
		s, err := idleFigures(ctx, w, n, calls)
		if err != nil {
			return nil, err
		}
		after, err := connections(ctx, w)
		if err != nil {
			return nil, err
		}
		s[idleBytes] = float64(usedMemory()-bytes) / float64(n)
		s[idleGoroutines] = float64(runtime.NumGoroutine()-goroutines) / float64(n)
		s[idleConnections] = after - clients
		return s, nil
	}
}

func idleFigures(ctx context.Context, w *world, n int, calls *meter.Calls) (sample, error) {
	runtime.GC() // garbage of the start does not count
	before, err := readMeters(ctx, w.rdb)
	if err != nil {
		return nil, err
	}
	sent := calls.Count()
	if err := wait(ctx, w.long(30*time.Second)); err != nil {
		return nil, err
	}
	sent = calls.Count() - sent
	after, err := readMeters(ctx, w.rdb)
	if err != nil {
		return nil, err
	}
	took := after.at.Sub(before.at).Seconds()
	s := sample{
		idleCommands: (after.commands - before.commands - 1) / took / float64(n), // 1: INFO
		idleCalls:    float64(sent) / took / float64(n),
		idleClient:   (after.client - before.client).Seconds() / took,
		idleRedis:    (after.redis - before.redis).Seconds() / took,
		othersBusy:   between(before, after, 1)[othersBusy],
	}
	return s, nil
}

// usedMemory returns the memory in use by this process: heap and stacks, without
// garbage.
func usedMemory() int64 {
	debug.FreeOSMemory()
	return heldMemory()
}

// heldMemory is usedMemory with garbage.
func heldMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func connections(ctx context.Context, w *world) (float64, error) {
	info, err := w.rdb.Info(ctx, "clients").Result()
	if err != nil {
		return 0, fmt.Errorf("count connections: %w", err)
	}
	return parseInfo(info)["connected_clients"], nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

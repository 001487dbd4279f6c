package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/redistest"
)

// world is where contenders run: one Redis for all of them, and how large the
// runs are.
type world struct {
	server *redistest.Server
	rdb    *redis.Client // for loading and for meters
	scale  float64       // of how much and how long is measured; 1: as the issue asks
	log    io.Writer

	profile io.Writer // of what is measured next; nil: none is wanted
}

func newWorld(scale float64, log io.Writer) (*world, error) {
	server, err := redistest.Launch()
	if err != nil {
		return nil, err
	}
	w := &world{server: server, scale: scale, log: log}
	w.rdb = w.client(4)
	return w, nil
}

func (w *world) close() error {
	_ = w.rdb.Close() // the server goes too
	return w.server.Close()
}

// client connects with at most n connections; replies may take long on a
// server that is being loaded.
func (w *world) client(n int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: w.server.Addr, PoolSize: n, ReadTimeout: 60 * time.Second, Protocol: 2})
}

// clean empties Redis and this process, so that no contender pays for the one
// before.
func (w *world) clean(ctx context.Context) error {
	if err := w.rdb.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("clean: %w", err)
	}
	if err := w.rdb.ConfigResetStat(ctx).Err(); err != nil {
		return fmt.Errorf("clean: %w", err)
	}
	runtime.GC()
	return nil
}

// many scales a count.
func (w *world) many(n int) int { return max(1, int(float64(n)*w.scale)) }

// long scales a time; below a second nothing is to be seen.
func (w *world) long(d time.Duration) time.Duration {
	return max(time.Second, time.Duration(float64(d)*w.scale))
}

// quietSystem is an actor system that logs nothing.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

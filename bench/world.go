package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
)

// world is the environment of the contenders: one Redis for all, and the scale.
type world struct {
	server   *redistest.Server
	rdb      *redis.Client // for loading and for meters
	postgres *postgres     // nil until a contender needs it, see startPostgres
	durable  bool          // PostgreSQL waits for its disk before it confirms
	scale    float64       // of counts and durations; 1: as documented
	log      io.Writer

	profile io.Writer // for the CPU profile of the next measurement; nil: none
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
	_ = w.rdb.Close() // the server ends too
	err := w.server.Close()
	if w.postgres != nil {
		err = errors.Join(err, w.postgres.close())
	}
	return err
}

// client connects with at most n connections. Its read timeout is long, because replies
// are slow while the server is loaded.
func (w *world) client(n int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: w.server.Addr, PoolSize: n, ReadTimeout: 60 * time.Second, Protocol: 2})
}

// clean empties Redis and collects garbage, so that a contender does not affect the next
// one.
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

// many scales a count, to at least 1.
func (w *world) many(n int) int { return max(1, int(float64(n)*w.scale)) }

// long scales a duration, to at least a second.
func (w *world) long(d time.Duration) time.Duration {
	return max(time.Second, time.Duration(float64(d)*w.scale))
}

// quietSystem returns an actor system that logs nothing.
// used is how a System of a benchmark uses Redis.
type used struct {
	meters   metric.MeterProvider // nil: the global provider
	switches opened.Switches
}

// system makes a System that logs nothing.
func (u used) system(rdb redis.UniversalClient, handlers ...wakebell.Handler) (*wakebell.System, error) {
	conn, err := connection.Switched(rdb, connection.Config{Logger: quiet(), MeterProvider: u.meters}, u.switches)
	if err != nil {
		return nil, err
	}
	return wakebell.New(quietSystem(), conn, wakebell.Config{Handlers: handlers})
}

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/meter"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	defaultRedis  = "redis://127.0.0.1:6379"
	embeddedRedis = "embedded"
)

// connection is the connection of a command to Redis.
type connection struct {
	rdb      redis.UniversalClient
	server   *embedded.Server // nil: an external server
	prefix   string
	keys     wakebelltype.Keys
	celery   bool
	calls    *meter.Calls // nil before countCalls
	watching *waiting     // nil: waits are not reported
}

// connect returns a client for the Redis of --redis or the environment. It sends no
// command yet.
func (a *app) connect() (*connection, error) {
	if err := a.notRemote(); err != nil {
		return nil, err
	}
	where := a.redisURL
	if where == "" {
		where = os.Getenv("WAKEBELL_REDIS")
	}
	if where == "" {
		where = defaultRedis
	}
	c := &connection{prefix: a.prefix, keys: a.keys, celery: a.celery}
	if where == embeddedRedis {
		if err := a.tls.check("rediss:// URLs", false); err != nil {
			return nil, err
		}
		c.server = embedded.Start()
		c.rdb = c.server.Client()
		return c, nil
	}
	rdb, err := dial(where, a.tls)
	if err != nil {
		return nil, err
	}
	c.rdb = rdb
	return c, nil
}

// client returns a Client. It drops its log: a command prints its errors.
func (c *connection) client() (*wakebell.Client, error) {
	return wakebell.NewClient(c.rdb, wakebell.ClientConfig{
		Keys: c.keys, Prefix: c.prefix, Celery: c.celery, Logger: slog.New(slog.DiscardHandler),
		RetryFor: retryFor,
	})
}

// countCalls starts counting commands.
func (c *connection) countCalls() { c.calls = meter.CountCalls(c.rdb) }

// measured reports whether the server's metrics can be measured: a single server
// outside of this process.
func (c *connection) measured() bool {
	_, clustered := c.rdb.(*redis.ClusterClient)
	return !c.embedded() && !clustered
}

// embedded reports whether the server runs in this process.
func (c *connection) embedded() bool { return c.server != nil }

func (c *connection) close() error {
	if c.watching != nil {
		c.watching.stop()
	}
	err := c.rdb.Close()
	if c.server != nil {
		c.server.Close()
	}
	if err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// withClient runs fn with a Client of the Redis of --redis.
func (a *app) withClient(fn func(*wakebell.Client) error) (err error) {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	conn.watch(a, retryFor)
	client, err := conn.client()
	if err != nil {
		return err
	}
	return fn(client)
}

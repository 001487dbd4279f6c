package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	durable "github.com/wakebell/wakebell/embedded"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/meter"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	defaultRedis = "redis://127.0.0.1:6379"
	// EmbeddedRedis as --redis starts a server inside this process.
	EmbeddedRedis = "embedded"
	// embeddedIn begins a --redis that names the directory of such a server.
	embeddedIn = EmbeddedRedis + ":"
)

// Connection is the connection of a command to Redis.
type Connection struct {
	Redis    redis.UniversalClient
	Replicas redis.UniversalClient // of listings; nil: they are read from masters too
	server   interface{ Close() }  // in this process; nil: another one
	Prefix   string
	Keys     wakebelltype.Keys
	celery   bool
	zone     *time.Location
	payloads *payload.Chain // of what is stored; nil: as it is
	Calls    *meter.Calls   // nil before CountCalls
	watching *waiting       // nil: waits are not reported
}

// Connect returns a client for the Redis of --redis or the environment. It sends no
// command yet.
func (a *App) Connect() (*Connection, error) {
	return a.ConnectLogging(NewLogger(a.Stderr, "text", "warn"))
}

// ConnectLogging is Connect for a command with a log, to which an embedded store reports.
func (a *App) ConnectLogging(log *slog.Logger) (*Connection, error) {
	if err := a.notRemote(); err != nil {
		return nil, err
	}
	where := a.RedisURL
	if where == "" {
		where = os.Getenv("WAKEBELL_REDIS")
	}
	if where == "" {
		where = defaultRedis
	}
	if err := a.loadPayloads(); err != nil {
		return nil, err
	}
	c := &Connection{Prefix: a.Prefix, Keys: a.Keys, celery: a.Celery, zone: a.Zone, payloads: a.Payloads()}
	if where == EmbeddedRedis {
		if err := a.tls.check("rediss:// URLs", false); err != nil {
			return nil, err
		}
		server := embedded.Start()
		c.server, c.Redis = server, server.Client()
		return c, nil
	}
	if where, ok := strings.CutPrefix(where, embeddedIn); ok {
		if err := a.tls.check("rediss:// URLs", false); err != nil {
			return nil, err
		}
		return c, c.openStore(where, log)
	}
	found, err := dial(where, a.tls)
	if err != nil {
		return nil, err
	}
	c.Redis, c.Replicas = found.redis, found.replicas
	return c, nil
}

// openStore opens the directory of embedded:DIR?sync=MODE&socket=PATH.
func (c *Connection) openStore(where string, log *slog.Logger) error {
	dir, query, _ := strings.Cut(where, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil || dir == "" {
		return Usagef("--redis: want %sDIRECTORY?sync=always", embeddedIn)
	}
	o := durable.Options{Sync: durable.Sync(parameters.Get("sync")), Logger: log, Socket: parameters.Get("socket")}
	for name, values := range parameters {
		if name != "sync" && name != "socket" || len(values) != 1 {
			return Usagef("--redis: %q is not a parameter of %sDIRECTORY; use sync and socket, once each", name, embeddedIn)
		}
	}
	if err := o.Sync.Validate(); err != nil {
		return Usagef("--redis: %v", err)
	}
	store, err := durable.Open(dir, o)
	if errors.Is(err, durable.ErrLocked) {
		return fmt.Errorf("%w; use --remote if it is a node with --listen, or --redis unix://PATH if it was opened with socket=PATH", err)
	}
	if err != nil {
		return err
	}
	c.Redis, c.server = store.Client(), closing{store, log}
	return nil
}

// closing logs why a store could not be closed.
type closing struct {
	store *durable.Store
	log   *slog.Logger
}

func (c closing) Close() {
	if err := c.store.Close(); err != nil {
		c.log.Error("cannot close the embedded store", "err", err)
	}
}

// Client returns a Client. It drops its log: a command prints its errors.
func (c *Connection) Client() (*wakebell.Client, error) {
	cfg := c.Config(slog.New(slog.DiscardHandler))
	cfg.RetryFor = retryFor
	return c.ClientWith(cfg)
}

// Config returns what flags and the environment say about the use of Redis.
func (c *Connection) Config(log *slog.Logger) connection.Config {
	return connection.Config{
		Keys: c.Keys, Prefix: c.Prefix, Celery: c.celery, Zone: c.zone, Payloads: c.payloads, ReadFrom: c.Replicas, Logger: log,
	}
}

// ClientWith returns a Client with another configuration.
func (c *Connection) ClientWith(cfg connection.Config) (*wakebell.Client, error) {
	conn, err := connection.New(c.Redis, cfg)
	if err != nil {
		return nil, err
	}
	return wakebell.NewClient(conn)
}

// CountCalls starts counting commands.
func (c *Connection) CountCalls() { c.Calls = meter.CountCalls(c.Redis) }

// Measured reports whether the server's metrics can be measured: a single server
// outside of this process.
func (c *Connection) Measured() bool {
	_, clustered := c.Redis.(*redis.ClusterClient)
	return !c.Embedded() && !clustered
}

// Embedded reports whether the server runs in this process.
func (c *Connection) Embedded() bool { return c.server != nil }

// Close closes the connection, and stops an embedded server.
func (c *Connection) Close() error {
	if c.watching != nil {
		c.watching.stop()
	}
	err := c.Redis.Close()
	if c.Replicas != nil {
		err = errors.Join(err, c.Replicas.Close())
	}
	if c.server != nil {
		c.server.Close()
	}
	if err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// WithTarget runs fn with a Client of another Redis than that of --redis, whose URL the
// flag --to gives. The flags for keys and topics apply to it as well, and those for TLS if
// its URL is of rediss.
func (a *App) WithTarget(where string, fn func(*wakebell.Client) error) (err error) {
	var encryption tlsFlags
	if strings.HasPrefix(where, "rediss") {
		encryption = a.tls
	}
	found, err := dial(where, encryption)
	if err != nil {
		return Usagef("%s", strings.Replace(err.Error(), "--redis:", "--to:", 1))
	}
	conn := &Connection{Prefix: a.Prefix, Keys: a.Keys, celery: a.Celery, zone: a.Zone, payloads: a.Payloads(), Redis: found.redis, Replicas: found.replicas}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.Watch(a, retryFor)
	client, err := conn.Client()
	if err != nil {
		return err
	}
	return fn(client)
}

// WithClient runs fn with a Client of the Redis of --redis.
func (a *App) WithClient(fn func(*wakebell.Client) error) (err error) {
	conn, err := a.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.Watch(a, retryFor)
	client, err := conn.Client()
	if err != nil {
		return err
	}
	return fn(client)
}

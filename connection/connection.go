// Package connection configures everything that clients of one Redis share: names of
// keys, the encoding of bodies, retries, telemetry, the audit and the log. A Connection is
// made once, and all clients and Systems of a process are made from it:
//
//	conn, err := connection.New(rdb, connection.Config{Prefix: "shop:"})
//	if err != nil {
//		return err
//	}
//	client, err := wakebell.NewClient(conn)
//	system, err := wakebell.New(actorSystem, conn, wakebell.Config{Handlers: handlers})
//	gates, err := gate.New(conn, gate.Config{})
//
// So nodes and clients cannot disagree about where timers are and how they are encoded.
// A process that works with two Redis servers, or under two prefixes, makes two.
//
// Clients that reach Redis through a node, package remote, and package outbox, which
// writes to a SQL database, take a Connection of WithoutRedis, or nil for the defaults.
package connection

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultPayloadLimit is the default of Config.PayloadLimit, in bytes: 1 MiB.
const DefaultPayloadLimit = opened.DefaultPayloadLimit

// Config configures a Connection. The zero value works.
//
// All processes that share timers need the same Keys, Prefix and Payloads, and those that
// fire recurring schedules the same Celery and Zone.
type Config struct {
	// Keys are the base names of the keys of timers and recurring schedules. Empty names
	// have the defaults of the Python libraries.
	Keys wakebelltype.Keys

	// GateKeys are the base names of the keys of gates. Empty names have the defaults of
	// redis-fifo-lock.
	GateKeys wakebelltype.GateKeys

	// Prefix precedes the name of every topic, queue and recurring schedule in Redis, as
	// the prefix of a router of faststream-redis-timers does. It does not precede names of
	// gates. Default: none.
	Prefix string

	// PayloadLimit bounds a body with its headers, in bytes, 0 to 512 MiB; 0 means
	// DefaultPayloadLimit. Package outbox takes at most 16 MiB. Payloads that other
	// programs wrote are read up to 16 MiB, or up to PayloadLimit if it is larger; a timer
	// with a larger payload is dead-lettered without it. So if the limit of a client is
	// over 16 MiB, the nodes need the same limit.
	PayloadLimit int

	// RetryFor bounds the retries of a call while Redis is unavailable, counted from the
	// beginning of the call. Retries have jittered delays that grow from 25 ms to 1 s. 0,
	// the default, retries until the deadline of the call's context, or for 2 s if it has
	// none. A positive value bounds both cases. A negative value disables retries.
	//
	// Retries inside go-redis count too. A call is not retried if another attempt of the
	// same length would exceed RetryFor. If the server does not answer at all, even a
	// single attempt takes the timeouts of the go-redis client. The requests of the actors
	// of a System and of gates are retried with backoffs of their own.
	RetryFor time.Duration

	// ReadFrom is a client that reads from replicas: a redis.ClusterClient with
	// ClusterOptions.ReadOnly, or a client of redis.NewFailoverClient with ReplicaOnly.
	// Listings and statistics then come from there, and lack what the replica has not
	// received yet, mostly a few milliseconds. What it does not answer is read from the
	// master, as on Redis before 7.0. Deliveries, and everything that changes something,
	// go to the master. The caller owns ReadFrom, and uses it for nothing else: New adds a
	// hook to it. If one of the two is a client of a Cluster, both must be. Default: none;
	// everything goes to the master.
	ReadFrom redis.UniversalClient

	// Celery makes the runs of recurring schedules that Python processes stored Celery
	// messages on this Redis. By default they are timers on the topic with the name of the
	// task and with the body {"args": …, "kwargs": …}.
	Celery bool

	// Zone is the time zone of crontabs and relative intervals that name none: that of the
	// Celery app. Default UTC; then last runs are still written with the offset that they
	// have.
	Zone *time.Location

	// ScheduleMiddleware wraps the calls that store timers, messages, recurring schedules
	// and reminders, and the requests that actors of this process send to a gateway; the
	// first is the outermost. A body that it changes is restored by a wakebell.Middleware
	// of the handlers. The body of a recurring schedule is changed when the schedule is
	// put. Celery tasks pass unchanged. Calls through a node have passed the middleware of
	// the process that made them; that of the node does not see them. Default: none.
	ScheduleMiddleware []wakebelltype.ScheduleMiddleware

	// Payloads compresses, encrypts or stores bodies elsewhere after ScheduleMiddleware,
	// and decodes them for handlers, for Topic.Get and for the pages of a dashboard. A
	// remote client encodes before anything leaves its process, so its node needs no keys.
	// Its Limit defaults to PayloadLimit. Default: nil; bodies are stored as they are.
	Payloads *payload.Chain

	// TracerProvider makes a span of each call that stores something, whose context the
	// headers of timers and messages carry, and of each delivery, which links to it.
	// Python consumers of queues ignore these headers, and dead letters of queues have
	// none. Default: the global provider of OpenTelemetry.
	TracerProvider trace.TracerProvider

	// Propagator writes and reads those headers. A header that is set already is kept.
	// Default: W3C trace context, with the headers traceparent and tracestate.
	Propagator propagation.TextMapPropagator

	// MeterProvider makes the instruments of docs/metrics.md. Without an SDK nothing is
	// measured. Default: the global provider of OpenTelemetry.
	MeterProvider metric.MeterProvider

	// MetricTopics is how many topics and queues, and how many gates, have a label of
	// their own in metrics, 0 to 100,000; 0 means 1,000. All others share the label _other.
	MetricTopics int

	// NoCounts switches the counts in Redis of what is scheduled, fired, published and
	// handled off; see wakebell.Client.Throughput and queue.Client.Throughput.
	NoCounts bool

	// Audit configures the record of operations such as Pause and Redrive; see
	// wakebell.Client.Audit. A user of Redis that makes them needs a right to its key.
	Audit wakebelltype.AuditConfig

	// Logger receives what no call returns. Default: slog.Default(), as it is when the
	// Connection is made.
	Logger *slog.Logger
}

// Connection is what clients and Systems are made from: a Redis and how it is used. It is
// safe for concurrent use, starts no goroutines and needs no Close. Its zero value cannot
// be used.
type Connection opened.Handle

// New returns a Connection on rdb, which the caller owns, and closes after everything that
// was made from the Connection. New does not call Redis. Its error wraps
// wakebell.ErrInvalid, and names each field that is wrong.
func New(rdb redis.UniversalClient, cfg Config) (*Connection, error) {
	return Switched(rdb, cfg, opened.Switches{})
}

// WithoutRedis returns a Connection for what needs no Redis of its own: remote.Dial,
// dashboard.New and outbox.New. Everything else refuses it with an error that wraps
// wakebell.ErrInvalid. Keys, GateKeys, ReadFrom, RetryFor, Audit, NoCounts, Celery, Zone and
// Prefix have no effect: for a remote client they are those of the node. The error is that
// of New.
func WithoutRedis(cfg Config) (*Connection, error) {
	h, err := opened.WithoutRedis(opened.Options(cfg), opened.Switches{})
	if err != nil {
		return nil, err
	}
	return (*Connection)(h), nil
}

// Switched is New with switches that only this module can set.
func Switched(rdb redis.UniversalClient, cfg Config, s opened.Switches) (*Connection, error) {
	h, err := opened.New(rdb, opened.Options(cfg), s)
	if err != nil {
		return nil, err
	}
	return (*Connection)(h), nil
}

// Redis returns the client that was passed to New; nil without Redis.
func (c *Connection) Redis() redis.UniversalClient {
	if in := c.inside(); in != nil {
		return in.Redis
	}
	return nil
}

// Config returns the configuration with its defaults.
func (c *Connection) Config() Config {
	if in := c.inside(); in != nil {
		return Config(in.Options)
	}
	return Config{}
}

// inside returns nil for a nil or zero Connection.
func (c *Connection) inside() *opened.Conn {
	in, err := opened.Any((*opened.Handle)(c))
	if err != nil {
		return nil
	}
	return in
}

package wakebell

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/internal/clientstore"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultPayloadLimit is the default of ClientConfig.PayloadLimit, in bytes.
const DefaultPayloadLimit = clientstore.DefaultPayloadLimit

// ClientConfig configures a Client; the zero value works.
type ClientConfig struct {
	// Keys are the base names of the Redis keys.
	Keys wakebelltype.Keys

	// Prefix precedes the name of every topic in Redis, as the prefix of a
	// router of faststream-redis-timers does. Default: none.
	Prefix string

	// PayloadLimit bounds a body with its headers, in bytes: up to 512 MiB; 0
	// means DefaultPayloadLimit. Payloads that other programs wrote are read up
	// to 16 MiB, or up to PayloadLimit if it is larger; a timer with a larger
	// payload is dead-lettered without it. So if the limit of a client is over
	// 16 MiB, the nodes need the same limit.
	PayloadLimit int

	// Celery makes Schedules.RunNow and Backfill send Celery messages for the
	// entries that Python processes stored, as recurring.SchedulerConfig.Celery does.
	Celery bool

	// Zone is the time zone of crontabs and relative intervals that name none: that of
	// the Celery app, as recurring.SchedulerConfig.Zone. Default UTC; then last runs
	// are still written with the offset that they have.
	Zone *time.Location

	// RetryFor bounds the retries of a call while Redis is unavailable, counted
	// from the beginning of the call. Retries have jittered delays that grow
	// from 25 ms to 1 s. 0, the default, retries until the deadline of the
	// call's context, or for 2 s if it has none. A positive value bounds both
	// cases. A negative value disables retries.
	//
	// Retries inside go-redis count too. A call is not retried if another
	// attempt of the same length would exceed RetryFor. If the server does not
	// answer at all, even a single attempt takes the timeouts of the go-redis
	// client.
	RetryFor time.Duration

	// Audit configures the record of operations such as Pause and Redrive; see
	// Client.Audit.
	Audit wakebelltype.AuditConfig

	// Logger receives warnings that no call returns; nil means slog.Default().
	Logger *slog.Logger

	// NoCoalescing sends every Schedule in a call of its own. Otherwise at most
	// four calls of a topic are in flight, and the next carries all schedules that
	// wait meanwhile; those of several topics share a pipeline. In a System the
	// exchanges of many topics share pipelines as well.
	NoCoalescing bool

	// ScheduleWindow is for how long a Schedule of less than 64 timers waits for
	// others of its topic, to be sent with them; at most 1 s. It saves CPU time where
	// many callers schedule a timer each: at 2,000 calls a second a window of 10 ms makes
	// a twentieth of the calls to Redis. A caller that schedules one timer after the other
	// only gets slower.
	//
	// 0, the default, is automatic: 10 ms while a topic has more than 1,000 calls a
	// second, unless these become fewer by it. A negative window switches it off.
	ScheduleWindow time.Duration

	// ScheduleMiddleware wraps the calls that store timers, messages, recurring
	// schedules and reminders; the first is the outermost. A body that it changes
	// is restored by a Middleware of the handlers. The body of a recurring schedule
	// is changed when the schedule is put.
	ScheduleMiddleware []wakebelltype.ScheduleMiddleware

	// Payloads compresses, encrypts or stores the bodies of what this Client schedules
	// and publishes, after ScheduleMiddleware; Topic.Get decodes them. Its Limit
	// defaults to PayloadLimit. nil: bodies are stored as they are.
	Payloads *payload.Chain

	// TracerProvider makes a span of each call that stores something, whose context
	// the headers of timers and messages carry; nil means the global one.
	TracerProvider trace.TracerProvider

	// Propagator writes and reads those headers; nil means W3C trace context, with
	// the headers traceparent and tracestate. A header that is set already is kept.
	Propagator propagation.TextMapPropagator

	// NoPayloadsApart sends the payloads of large batches with the script that
	// stores them. Otherwise they are sent beside it, in one transaction with it. In
	// a System it also has exchanges answer with the payloads of all leases.
	// Otherwise those of 32 KiB or more are read in a second round trip.
	NoPayloadsApart bool

	// ReadFrom is a client that reads from replicas: a redis.ClusterClient with
	// ClusterOptions.ReadOnly, or a client of redis.NewFailoverClient with ReplicaOnly.
	// Listings and statistics of this Client, its Queues and its Schedules then come from
	// there, and lack what the replica has not received yet, mostly a few milliseconds.
	// What it does not answer is read from the master, as on Redis before 7.0. Everything
	// that changes something goes to the master. The caller owns ReadFrom, and uses it for
	// nothing else: NewClient adds a hook to it. If one of the two is a client of a
	// Cluster, both must be. nil: everything goes to the master.
	ReadFrom redis.UniversalClient

	// NoCounts switches the counts of scheduled timers, of runs and of published messages
	// in Redis off; see Client.Throughput and queue.Client.Throughput.
	NoCounts bool

	// MeterProvider makes the instruments of docs/metrics.md; nil means the global
	// provider of OpenTelemetry. Without an SDK nothing is measured. MetricTopics is
	// how many topics, queues and gates each have a label of their own, 0 to 100,000;
	// 0 means 1,000. All others share the label _other.
	MeterProvider metric.MeterProvider
	MetricTopics  int

	// MetricShards measures each shard of a topic by itself: its series have the number
	// of the shard as the label messaging.destination.partition.id, and each counts for
	// MetricTopics. By default a topic has the sums of its shards.
	MetricShards bool
}

// queues returns the configuration of the queue client.
func (c ClientConfig) queues() queue.Config {
	return queue.Config{
		Prefix: c.Prefix, HashTag: c.Keys.HashTag, PayloadLimit: c.PayloadLimit, RetryFor: c.RetryFor, Audit: c.Audit, Logger: c.Logger,
		MeterProvider: c.MeterProvider, MetricTopics: c.MetricTopics, ReadFrom: c.ReadFrom, NoCounts: c.NoCounts,
		ScheduleMiddleware: c.ScheduleMiddleware, TracerProvider: c.TracerProvider, Propagator: c.Propagator,
	}
}

// recurring returns the configuration of the recurring schedules; zone is that of crontabs
// without one.
func (c ClientConfig) recurring() recurring.Config {
	return recurring.Config{
		Keys: c.Keys, Prefix: c.Prefix, PayloadLimit: c.PayloadLimit, Celery: c.Celery,
		Zone: c.Zone, RetryFor: c.RetryFor, Logger: c.Logger, Audit: c.Audit,
		ScheduleMiddleware: c.ScheduleMiddleware, TracerProvider: c.TracerProvider, Propagator: c.Propagator,
		ReadFrom: c.ReadFrom, NoCounts: c.NoCounts,
	}
}

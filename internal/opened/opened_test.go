package opened

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	metrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	traces "go.opentelemetry.io/otel/trace/noop"

	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestEveryOptionReachesEveryStore sets every option and switch, so that a new one cannot
// be forgotten, and checks what each kind of store and edge has of them.
func TestEveryOptionReachesEveryStore(t *testing.T) {
	t.Parallel()
	rdb, from := redis.NewClient(&redis.Options{}), redis.NewClient(&redis.Options{})
	t.Cleanup(func() { require.NoError(t, rdb.Close()); require.NoError(t, from.Close()) })
	pass := func(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc { return next }
	options := Options{
		Keys: wakebelltype.Keys{HashTag: true, Beat: "b:"}, GateKeys: wakebelltype.GateKeys{Stream: "s"}, Prefix: "p", PayloadLimit: 32 << 20,
		RetryFor: time.Minute, ReadFrom: from, Celery: true, Zone: time.UTC, ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{pass},
		Payloads: &payload.Chain{}, TracerProvider: traces.NewTracerProvider(), Propagator: propagation.TraceContext{},
		MeterProvider: metrics.NewMeterProvider(), MetricTopics: 4, NoCounts: true, Audit: wakebelltype.AuditConfig{Key: "a"},
		Logger: slog.New(slog.DiscardHandler),
	}
	switches := Switches{NoCoalescing: true, NoPayloadsApart: true, ScheduleWindow: time.Millisecond}
	for f, v := range reflect.ValueOf(options).Fields() {
		require.False(t, v.IsZero(), "the test sets no %s", f.Name)
	}
	h, err := New(rdb, options, switches)
	require.NoError(t, err)
	c, err := Of(h)
	require.NoError(t, err)

	store, err := c.Timers()
	require.NoError(t, err)
	untried, err := c.Untried()
	require.NoError(t, err)
	reader, err := c.Reader(store)
	require.NoError(t, err)
	retried := redisops.RetryFor(time.Minute)
	for name, s := range map[string]struct {
		*timers.Timers
		rdb   redis.UniversalClient
		retry redisops.Retry
	}{"client": {store, rdb, retried}, "system": {untried, rdb, redisops.Retry{}}, "listings": {reader, from, retried}} {
		require.Same(t, s.rdb, s.RDB, name)
		require.Equal(t, s.retry, s.Retry, name)
		require.Equal(t, "b:", s.Keys().Beat, name)
		require.True(t, s.Keys().HashTag, name)
		require.Equal(t, options.PayloadLimit, s.MaxPayload, name)
		require.True(t, s.NoCounts && s.NoCoalescing && s.NoPayloadsApart, name)
		require.Equal(t, switches.ScheduleWindow, s.ScheduleWindow, name)
		require.Same(t, c.Logger, s.Logger, name)
		require.Equal(t, c.Metrics, s.Metrics, name)
	}
	require.Same(t, c.Audit, store.Audit)
	require.Nil(t, untried.Audit, "the client of a System records")
	require.Equal(t, "a", reader.Audit.Key())

	require.Len(t, c.Edge.Middleware, 2, "with the chain")
	require.Equal(t, options.PayloadLimit, c.Edge.Limit)
	require.False(t, c.Edge.Apart)
	require.Equal(t, options.PayloadLimit, c.Payloads.Limit)
	apart := c.Apart()
	require.True(t, apart.Apart)
	require.Zero(t, apart.Limit)
	require.Len(t, apart.Middleware, 2)
	require.Same(t, c.Edge.Tracer, apart.Tracer)
}

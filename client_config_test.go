package wakebell

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
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestFieldsOfAConfigurationReachAllThatHaveThem sets every field, so that a new one
// cannot be forgotten on the way from a System to its Client, or from a Client to its
// queues and recurring schedules.
func TestFieldsOfAConfigurationReachAllThatHaveThem(t *testing.T) {
	t.Parallel()
	full := ClientConfig{
		Keys: wakebelltype.Keys{HashTag: true, Beat: "b:"}, Prefix: "p", PayloadLimit: 1, RetryFor: 2, Celery: true, Logger: slog.Default(),
		NoCoalescing: true, ScheduleWindow: 3, ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{nil}, Payloads: &payload.Chain{},
		TracerProvider: traces.NewTracerProvider(), Propagator: propagation.TraceContext{}, NoPayloadsApart: true,
		ReadFrom: redis.NewClient(&redis.Options{Addr: "unused:1"}), NoCounts: true, Audit: wakebelltype.AuditConfig{Key: "a"},
		MeterProvider: metrics.NewMeterProvider(), MetricTopics: 4, MetricShards: true, Zone: time.UTC,
	}
	t.Cleanup(func() { require.NoError(t, full.ReadFrom.(*redis.Client).Close()) })
	carries(t, full, full) // all are set
	carries(t, full, full.queues())
	carries(t, full, full.recurring())

	node := Config{Scheduler: &recurring.SchedulerConfig{Celery: true, Zone: time.UTC}}
	for i := range reflect.TypeFor[ClientConfig]().NumField() {
		f := reflect.TypeFor[ClientConfig]().Field(i)
		if to := reflect.ValueOf(&node).Elem().FieldByName(f.Name); to.IsValid() {
			to.Set(reflect.ValueOf(full).Field(i))
		}
	}
	carries(t, full, node.client())
}

// carries checks that a configuration has the values of another, which are all set, in
// the fields of the same names.
func carries(t *testing.T, from, to any) {
	t.Helper()
	source, target := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range source.NumField() {
		name := source.Type().Field(i).Name
		require.False(t, source.Field(i).IsZero(), "the test sets no %s", name)
		if f := target.FieldByName(name); f.IsValid() && f.Type() == source.Field(i).Type() {
			require.Equal(t, source.Field(i).Interface(), f.Interface(), "%T.%s", to, name)
		}
	}
}

package joins

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/wakebelltype"
)

// counts returns what a reader has of joins, by metric and outcome.
func counts(t *testing.T, reader *sdk.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && strings.HasPrefix(m.Name, "wakebell.join") {
				for _, p := range sum.DataPoints {
					outcome, _ := p.Attributes.Value("wakebell.outcome")
					found[m.Name+" "+outcome.AsString()] += p.Value
				}
			}
		}
	}
	return found
}

func TestJoinsAreCounted(t *testing.T) {
	t.Parallel()
	w, ctx, reader := newWorld(t), t.Context(), sdk.NewManualReader()
	w.timers.Metrics = metrics.New(metrics.Options{Provider: sdk.NewMeterProvider(sdk.WithReader(reader))})
	a, b, c, gone := w.part("a", true), w.part("b", true), w.part("c", true), w.part("gone", false)
	w.create(a, b, c, gone)
	w.Began(ctx, w.of, false)
	for range 2 { // the second end of a part is none
		require.NoError(t, w.Note(ctx, w.of, End{Part: a, End: wakebelltype.EndDone}, End{Part: b, End: wakebelltype.EndDead}))
	}
	w.audit()
	w.audit()
	require.Equal(t, map[string]int64{
		"wakebell.joins made": 1, "wakebell.joins timed_out": 1,
		"wakebell.join.parts done": 1, "wakebell.join.parts dead": 1, "wakebell.join.parts cancelled": 1,
		"wakebell.join.audits ends": 1, "wakebell.join.audits nothing": 1,
	}, counts(t, reader))

	e := End{Part: c, End: wakebelltype.EndDone} // of a node that crashes before it runs the timer
	_, err := w.timers.RunText(ctx, settleScript, w.keys(w.of), w.of.Name, "0", member(c), e.text())
	require.NoError(t, err)
	w.audit()
	w.Began(ctx, w.of, false)
	_, _, err = w.Cancel(ctx, w.of, nil)
	require.NoError(t, err)
	all := counts(t, reader)
	for _, name := range []string{"wakebell.join.audits timer", "wakebell.joins complete", "wakebell.joins cancelled"} {
		require.EqualValues(t, 1, all[name], name)
	}
}

// TestJoinsAreNotReadToBeCounted checks that the beginning of a handler costs no command while
// nothing is measured or watched, and one otherwise.
func TestJoinsAreNotReadToBeCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.part("a", true))
	sent := &sentCommands{}
	w.rdb.AddHook(sent)
	w.Began(t.Context(), w.of, false)
	require.Zero(t, sent.n.Load())
	join, found := w.Began(t.Context(), w.of, true) // which may also open a connection
	require.True(t, found)
	require.EqualValues(t, 1, join.Parts)
	require.Positive(t, sent.n.Swap(0), "a watcher wants it")
	w.timers.Metrics = metrics.New(metrics.Options{Provider: sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))})
	w.Began(t.Context(), w.of, false)
	once := sent.n.Swap(0)
	require.Positive(t, once)
	w.Began(t.Context(), w.of, true)
	require.Equal(t, once, sent.n.Load(), "it is read once for both")
}

// sentCommands counts the pipelines and single commands of a client.
type sentCommands struct{ n atomic.Int64 }

func (s *sentCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { s.n.Add(1); return next(ctx, cmd) }
}

func (s *sentCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { s.n.Add(1); return next(ctx, cmds) }
}

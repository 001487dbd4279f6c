package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	limitedPerSecond = 1000
	limitedTimers    = 6000 // in a run
	oneKeyTimers     = 20_000
)

// flowControl handles timers with flow control that never holds one back. Two contenders
// without any show by how much two equal ones differ.
func flowControl() []contender {
	with := func(options ...wakebell.HandlerOption) func(context.Context, *world) (sample, error) {
		return nodeHandling(100, used{}, single(200, nil, options...))
	}
	return []contender{
		{"off", with()},
		{"off-again", with()},
		{"breaker", with(wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5}))},
		{"adaptive", with(wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{Min: 200}))},
		{"group", with(wakebell.Weight("group", 1))},
		{"rate-limit", with(wakebell.RateLimit(1_000_000, time.Second, 0))},
		{"in-flight", with(wakebell.MaxInFlight(1_000_000))},
		{"per-key", with(wakebell.PerKey(1))},
	}
}

// limited has a node handle timers that are due, so many a second.
func limited(ctx context.Context, w *world) (sample, error) {
	n := w.many(limitedTimers)
	handle := single(200, nil, wakebell.RateLimit(limitedPerSecond, time.Second, limitedPerSecond/10))
	return nodeHandlingMany(ctx, w, n, 100, used{}, handle)
}

// limitedBullMQ has BullMQ do the same with its limiter.
func limitedBullMQ(ctx context.Context, w *world) (sample, error) {
	if err := bullInstalled(); err != nil {
		return nil, err
	}
	return runBullMQ(ctx, w, "handle", w.many(limitedTimers), 200, "0", strconv.Itoa(limitedPerSecond))
}

// oneKey has a node handle timers of one key, one after the other.
func oneKey(ctx context.Context, w *world) (sample, error) {
	return nodeHandlingMany(ctx, w, w.many(oneKeyTimers), 100, used{}, single(200, nil, wakebell.PerKey(1)), wakebell.Key("k"))
}

// oneKeyRun is oneKey with key runs.
func oneKeyRun(ctx context.Context, w *world) (sample, error) {
	handle := single(200, nil, wakebell.PerKey(1), wakebell.KeyRun(100))
	return nodeHandlingMany(ctx, w, w.many(oneKeyTimers), 100, used{}, handle, wakebell.Key("k"))
}

// scrapeEvery is the interval at which metrics are collected, as by Prometheus.
const scrapeEvery = time.Second

// measured is node with the SDK of OpenTelemetry, whose metrics are collected all the
// time.
func measured(maxConcurrent, bodyBytes int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		reader := metric.NewManualReader()
		provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(0))
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- scrape(ctx, reader) }()
		s, err := nodeWith(maxConcurrent, bodyBytes, used{meters: provider})(ctx, w)
		cancel()
		return s, errors.Join(err, <-ended)
	}
}

// scrape collects the metrics until ctx ends.
func scrape(ctx context.Context, reader metric.Reader) error {
	every := time.NewTicker(scrapeEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		var collected metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &collected); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

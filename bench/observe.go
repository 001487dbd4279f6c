package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

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

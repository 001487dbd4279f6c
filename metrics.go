package wakebell

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/metrics"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
)

// MeterProvider returns Config.MeterProvider, or the global provider, for what
// measures beside the System.
func (s *System) MeterProvider() metric.MeterProvider {
	if s.cfg.MeterProvider == nil {
		return otel.GetMeterProvider()
	}
	return s.cfg.MeterProvider
}

// measured returns a Handle that records how late and for how long a handler runs.
func (s *System) measured(topic string, handle poller.Handle) poller.Handle {
	t := s.client.metrics.Topic(topic)
	if t == nil {
		return handle
	}
	return func(ctx context.Context, d *poller.Delivery) (o poller.Outcome) {
		if !t.Measures() {
			return handle(ctx, d)
		}
		began, result := time.Now(), metrics.Crashed
		if d.Claims == 1 {
			t.Began(d.Lateness() + d.Waited(began))
		}
		defer func() { t.Ended(result, time.Since(began)) }()
		o = handle(ctx, d)
		result = o.Result()
		return o
	}
}

// observe reports the node to the metrics until the returned function is called.
func (s *System) observe(runtime *actors.Runtime) (end func()) {
	node := metrics.Node{Counters: runtime.Counters, Outages: runtime.Outages, Queues: s.queueLengths}
	node.Backlog = func(ctx context.Context) ([]metrics.Backlog, error) { return s.store.Backlog(ctx, s.cfg.Prefix) }
	return s.client.metrics.Observe(node)
}

// queueLengths reads the length of the queues that this node handles.
func (s *System) queueLengths(ctx context.Context) (all []metrics.Queue, err error) {
	s.queues.Range(func(_, value any) bool {
		q := value.(*queuestore.Queue)
		st, failed := q.Stats(ctx)
		if errors.Is(failed, ErrUnavailable) || ctx.Err() != nil {
			err = failed
			return false
		}
		if failed == nil {
			all = append(all, metrics.Queue{Name: q.Name(), Depth: st.Pending, InFlight: st.Processing, Dead: st.Dead})
		}
		return true
	})
	return all, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/wakebell/wakebell"
)

// axis is along what the rate is measured while all else stays: timers that are due at the same
// instant, 100 B bodies, a handler that does nothing.
type axis struct {
	name, what string
	values     []int
	measured   func(value int) func(context.Context, *world) (sample, error)
	names      func(value int) string // of contenders; nil: the values
	of         string                 // the trial of the contenders; empty: one of its own
}

// axes are the axes of growth. That over max_concurrent is a trial of its own.
var axes = []axis{
	{name: "bytes", what: "bytes of a body", values: []int{10, 100, 1000, 10_000, 100_000}, measured: bodies},
	{name: "pending", what: "timers that are pending beside", values: []int{1000, 10_000, 100_000, 1_000_000, 5_000_000, 20_000_000}, measured: besidePending},
	{name: "topics", what: "topics of a node", values: []int{1, 10, 100, 1000, 10_000, 50_000}, measured: func(topics int) func(context.Context, *world) (sample, error) {
		return dueTogether{topics: topics, nodes: 1}.run
	}},
	{name: "nodes", what: "nodes, of a topic", values: []int{1, 2, 5, 10, 20}, measured: func(nodes int) func(context.Context, *world) (sample, error) {
		return dueTogether{topics: 1, nodes: nodes}.run
	}},
	{name: "masters", what: "masters of a Cluster, of a topic with 4 shards", values: []int{1, 2, 4}, of: "shards",
		names: func(masters int) string { return fmt.Sprint("4-on-", masters) }},
}

// growth returns a trial of each axis.
func growth() (all []trial) {
	for _, a := range axes {
		if a.of != "" {
			continue
		}
		t := trial{name: "growth-" + a.name, about: "timers that are due, by " + a.what, once: true}
		for _, v := range a.values {
			t.contenders = append(t.contenders, contender{strconv.Itoa(v), a.measured(v)})
		}
		all = append(all, t)
	}
	return all
}

// bodies handles timers with bodies of a size, of 200 MB at most.
func bodies(size int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := min(w.many(deliverTimers), 200_000_000/size)
		return nodeHandlingMany(ctx, w, n, size, used{}, single(200, nil))
	}
}

// besidePending handles timers of a topic with others that are due much later.
func besidePending(pending int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n, pending := w.many(deliverTimers), w.many(pending)
		if err := loadPending(ctx, w, "node", n, pending); err != nil {
			return nil, err
		}
		if err := settleRehash(ctx, w, "node", n, pending); err != nil {
			return nil, err
		}
		return nodeHandlingMany(ctx, w, n, 100, used{}, single(200, nil))
	}
}

// dueTogether is nodes with topics whose timers are all due at the same instant, when the nodes
// have been idle for a while.
type dueTogether struct{ topics, nodes int }

func (d dueTogether) run(ctx context.Context, w *world) (_ sample, err error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }() // the figures are taken
	var handled atomic.Int64
	var nodes []*wakebell.System
	defer func() {
		for _, sys := range nodes {
			err = errors.Join(err, sys.Stop())
		}
	}()
	for range d.nodes {
		sys, err := d.node(rdb, &handled)
		if err != nil {
			return nil, err
		}
		if err := sys.Start(ctx); err != nil {
			return nil, err
		}
		nodes = append(nodes, sys)
	}
	n := w.many(deliverTimers)
	due := time.Now().Add(15*time.Second + time.Duration(d.topics)*time.Millisecond)
	if err := d.load(ctx, rdb, n, due); err != nil {
		return nil, err
	}
	if time.Until(due) < 5*time.Second {
		return nil, fmt.Errorf("loading took too long: timers are due in %v", time.Until(due))
	}
	if err := wait(ctx, time.Until(due)); err != nil {
		return nil, err
	}
	return w.measure(ctx, n, func() error {
		return untilEvery(ctx, steadyLook, func() bool {
			acked := int64(0)
			for _, sys := range nodes {
				acked += ackedBy(sys)
			}
			return handled.Load() >= int64(n) && acked >= int64(n)
		})
	})
}

func (d dueTogether) topic(i int) wakebell.Topic[[]byte] {
	return wakebell.NewTopic[[]byte](fmt.Sprintf("grown-%05d", i%d.topics))
}

func (d dueTogether) node(rdb redis.UniversalClient, handled *atomic.Int64) (*wakebell.System, error) {
	handlers := make([]wakebell.Handler, d.topics)
	for i := range handlers {
		handlers[i] = wakebell.Handle(d.topic(i), func(context.Context, wakebell.Timer[[]byte]) error {
			handled.Add(1)
			return nil
		}, wakebell.MaxConcurrent(200))
	}
	return used{}.system(rdb, handlers...)
}

// load schedules n timers evenly, a few topics a call.
func (d dueTogether) load(ctx context.Context, rdb redis.UniversalClient, n int, due time.Time) error {
	body, perTopic := make([]byte, 100), (n+d.topics-1)/d.topics
	return loadAll(ctx, rdb, loaders, n, func(i int) wakebell.Draft {
		return d.topic(i/perTopic).Draft(body, wakebell.ID(timerID(i)), wakebell.At(due))
	})
}

// drawGrowth draws a curve for each axis that was measured.
func drawGrowth(r *results, folder string) error {
	for _, a := range axes {
		points := a.points(r)
		if len(points) == 0 {
			continue
		}
		p := newPlot("timers handled per second", a.what, "thousands per second")
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticksAt(a.values)
		if err := addLine(p, "wakebell", points, 0); err != nil {
			return err
		}
		p.Y.Min = 0
		if err := p.Save(12*vg.Centimeter, 7*vg.Centimeter, filepath.Join(folder, "growth-"+a.name+".svg")); err != nil {
			return err
		}
	}
	return nil
}

// points are what was measured along the axis.
func (a axis) points(r *results) (points plotter.XYs) {
	trial, name := "growth-"+a.name, strconv.Itoa
	if a.of != "" {
		trial, name = a.of, a.names
	}
	for _, v := range a.values {
		if m := r.median(trial, name(v), rate); m > 0 && !math.IsNaN(m) {
			points = append(points, plotter.XY{X: float64(v), Y: m / 1000})
		}
	}
	return points
}

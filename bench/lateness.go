package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell"
)

// The figures of lateness in ms, from the instant of a timer to its handler. Redis and
// the client have the same clock here.
const (
	lateP50 = "late_p50_ms"
	lateP99 = "late_p99_ms"
	lateMax = "late_max_ms"

	lateStartP99 = "late_start_p99_ms" // of a warm-up

	earlyOnes = "early"
)

const latenessTimers = 500

// lateness schedules one timer at a time on a topic that is idle otherwise.
func lateness(in time.Duration) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (_ sample, err error) {
		rdb := w.client(0)
		defer func() { _ = rdb.Close() }()
		topic := wakebell.NewTopic[string]("late")
		began := make(chan time.Duration, 1) // how late
		handle := wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error {
			began <- time.Since(t.Activation)
			return nil
		})
		sys, err := used{}.system(rdb, handle)
		if err != nil {
			return nil, err
		}
		if err := sys.Start(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sys.Stop()) }()
		if err := wait(ctx, time.Second); err != nil {
			return nil, err
		}
		late := make([]float64, w.many(latenessTimers))
		for i := range late {
			_, err := topic.Schedule(ctx, sys.Client(), "x", wakebell.In(in))
			if err != nil {
				return nil, err
			}
			late[i] = (<-began).Seconds() * 1e3
			if err := wait(ctx, 2*time.Millisecond); err != nil { // until it is settled
				return nil, err
			}
		}
		return latenessFigures(late), nil
	}
}

// latenessQuantiles are the quantiles of the plot.
var latenessQuantiles = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1}

func quantileName(q float64) string { return fmt.Sprintf("q%g", 100*q) }

func latenessFigures(late []float64) sample {
	slices.Sort(late)
	s := sample{lateP50: quantile(late, 0.5), lateP99: quantile(late, 0.99), lateMax: quantile(late, 1)}
	early, _ := slices.BinarySearch(late, 0)
	s[earlyOnes] = float64(early)
	for _, q := range latenessQuantiles {
		s[quantileName(q)] = quantile(late, q)
	}
	return s
}

func latenessOf(late chan float64) sample {
	all := make([]float64, 0, len(late))
	for len(late) > 0 {
		all = append(all, <-late)
	}
	return latenessFigures(all)
}

// schedulePaced schedules n timers for half a second ahead, evenly spread.
func schedulePaced(ctx context.Context, client *wakebell.Client, topic wakebell.Topic[string], n, perSecond int) error {
	start := time.Now().Add(500 * time.Millisecond)
	apart := time.Second / time.Duration(perSecond)
	for i := range n {
		at := start.Add(time.Duration(i) * apart)
		if ahead := time.Until(at) - 500*time.Millisecond; ahead > 0 {
			if err := wait(ctx, ahead); err != nil {
				return err
			}
		}
		if _, err := topic.Schedule(ctx, client, "x", wakebell.At(at)); err != nil {
			return err
		}
	}
	return nil
}

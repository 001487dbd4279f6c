package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell"
)

// simulate prints the load that fleets of topics put on one Redis; with --check it
// measures small fleets for comparison.
func simulate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f := fleet{seconds: 5}
	flags.Float64Var(&f.exchangeUS, "exchange", 35, "CPU time of Redis for an empty exchange, µs")
	flags.Float64Var(&f.timerUS, "timer", 4.5, "CPU time of Redis for a timer, µs")
	flags.Float64Var(&f.tripUS, "trip", 200, "round trip time, µs")
	check := flags.Bool("check", false, "measure, and compare")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *check {
		return checkSimulation(ctx, f)
	}
	fmt.Println("| topics | timers/s each | timers/s | Redis core | exchanges a timer | late p50, ms | late p99, ms |\n|---|---|---|---|---|---|---|")
	for _, of := range []struct {
		topics int
		rate   float64
	}{
		{1, 1000},
		{1, 50_000},
		{1, 150_000},
		{10, 1000},
		{10, 10_000},
		{100, 100},
		{100, 1000},
		{1000, 10},
		{1000, 20},
		{1000, 100},
		{10_000, 1},
		{10_000, 2},
		{10_000, 10},
		{50_000, 0.2},
		{50_000, 0.5},
	} {
		f.topics, f.rate = of.topics, of.rate
		l := f.run(rand.New(rand.NewPCG(1, 2)))
		fmt.Printf("| %d | %g | %.0f | %.0f %% | %s | %s | %s |\n", of.topics, of.rate, float64(of.topics)*of.rate,
			100*l.busy, digits(float64(l.exchanges)/float64(l.timers)), digits(l.p50), digits(l.p99))
	}
	return nil
}

// checkSimulation simulates and measures small fleets.
func checkSimulation(ctx context.Context, f fleet) (err error) {
	w, err := newWorld(1, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	fmt.Println("| topics | timers/s each | | Redis µs a timer | exchanges a timer | late p50, ms | late p99, ms |\n|---|---|---|---|---|---|---|")
	for _, of := range []struct {
		topics int
		rate   float64
	}{{1, 200}, {1, 2000}, {1, 20_000}, {20, 50}, {20, 200}, {200, 5}} {
		f.topics, f.rate = of.topics, of.rate
		l := f.run(rand.New(rand.NewPCG(1, 2)))
		n := float64(l.timers)
		row := "| %d | %g | %s | %s | %s | %s | %s |\n"
		fmt.Printf(row, of.topics, of.rate, "simulated", digits(l.busy*f.seconds*1e6/n), digits(float64(l.exchanges)/n), digits(l.p50), digits(l.p99))
		if err := w.clean(ctx); err != nil {
			return err
		}
		s, err := f.measure(ctx, w)
		if err != nil {
			return err
		}
		fmt.Printf(row, of.topics, of.rate, "measured", digits(s[redisUS]), digits(s[exchangesPer]), digits(s[lateP50]), digits(s[lateP99]))
	}
	return nil
}

const exchangesPer = "exchanges_per_timer"

// measure runs the fleet on a real Redis: its timers are loaded before they are due, as
// in the simulation, and handled by one node.
func (f fleet) measure(ctx context.Context, w *world) (_ sample, err error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }()
	var handled atomic.Int64
	late := make(chan float64, 1<<20)
	handlers := make([]wakebell.Handler, f.topics)
	topics := make([]wakebell.Topic[string], f.topics)
	for i := range handlers {
		topics[i] = wakebell.NewTopic[string](fmt.Sprintf("fleet-%d", i))
		handlers[i] = wakebell.Handle(topics[i], func(_ context.Context, t wakebell.Timer[string]) error {
			late <- time.Since(t.Activation).Seconds() * 1e3
			handled.Add(1)
			return nil
		}, wakebell.MaxConcurrent(100), wakebell.DeliveryWindow(0)) // the model has no window
	}
	sys, err := used{}.system(rdb, handlers...)
	if err != nil {
		return nil, err
	}
	n, err := f.load(ctx, sys.Client(), topics, time.Now().Add(5*time.Second))
	if err != nil {
		return nil, err
	}
	if err := sys.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sys.Stop()) }()
	if err := wait(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	before := exchangesOf(sys)
	s, err := w.measure(ctx, n, func() error {
		return until(ctx, func() bool { return handled.Load() >= int64(n) })
	})
	if err != nil {
		return nil, err
	}
	for name, value := range latenessOf(late) {
		s[name] = value
	}
	s[exchangesPer] = float64(exchangesOf(sys)-before) / float64(n)
	return s, nil
}

// load schedules the fleet's timers at random instants from start on.
func (f fleet) load(ctx context.Context, client *wakebell.Client, topics []wakebell.Topic[string], start time.Time) (n int, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, topic := range topics {
		var drafts []wakebell.Draft
		for at := random.ExpFloat64() / f.rate; at < f.seconds; at += random.ExpFloat64() / f.rate {
			drafts = append(drafts, topic.Draft("x", wakebell.At(start.Add(time.Duration(math.Round(at*1e9))))))
		}
		if _, err := client.Schedule(ctx, drafts...); err != nil {
			return 0, err
		}
		n += len(drafts)
	}
	return n, nil
}

func exchangesOf(sys *wakebell.System) (total int64) {
	for _, c := range sys.Counters() {
		total += c.Exchanges
	}
	return total
}

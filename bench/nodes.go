package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Figures of nodes that compete for timers.
const (
	emptyPer    = "empty_per_timer"
	peeksPer    = "peeks_per_timer"
	fallbackPer = "fallback_per_timer"
)

// competing is nodes that wait for the timers of the same topics.
type competing struct {
	nodes, topics int
	perSecond     int // timers of all topics together
	undivided     bool
}

// run starts the nodes, and measures while timers come due one after the other.
func (l competing) run(ctx context.Context, w *world) (_ sample, err error) {
	var handled atomic.Int64
	late := make(chan float64, 1<<20)
	topics := make([]wakebell.Topic[string], l.topics)
	handlers := make([]wakebell.Handler, l.topics)
	for i := range topics {
		topics[i] = wakebell.NewTopic[string](fmt.Sprintf("shared-%d", i))
		handlers[i] = wakebell.Handle(topics[i], func(_ context.Context, t wakebell.Timer[string]) error {
			late <- t.Lateness().Seconds() * 1e3
			handled.Add(1)
			return nil
		})
	}
	var all []*wakebell.System
	var clients []*redis.Client
	defer func() {
		for _, sys := range all {
			err = errors.Join(err, sys.Stop())
		}
		for _, rdb := range clients {
			_ = rdb.Close()
		}
	}()
	for range l.nodes {
		rdb := w.client(4)
		clients = append(clients, rdb)
		sys, err := used{switches: opened.Switches{NoDivision: l.undivided}}.system(rdb, handlers...)
		if err != nil {
			return nil, err
		}
		if err := sys.Start(ctx); err != nil {
			return nil, err
		}
		all = append(all, sys)
	}
	if err := wait(ctx, time.Second); err != nil {
		return nil, err
	}
	before := countersOf(all)
	each := int(w.long(10*time.Second).Seconds() * float64(l.perSecond) / float64(l.topics))
	errs := make([]error, len(topics))
	var schedulers sync.WaitGroup
	for i, topic := range topics {
		schedulers.Go(func() { errs[i] = schedulePaced(ctx, all[0].Client(), topic, each, l.perSecond/l.topics) })
	}
	schedulers.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	n := float64(each * l.topics)
	if err := until(ctx, func() bool { return handled.Load() >= int64(n) }); err != nil {
		return nil, err
	}
	figures, after := latenessOf(late), countersOf(all)
	figures[emptyPer] = float64(after.Empty-before.Empty) / n
	figures[peeksPer] = float64(after.Peeks-before.Peeks) / n
	figures[fallbackPer] = float64(after.FallbackDelivered-before.FallbackDelivered) / n
	figures[exchangesPer] = float64(after.Exchanges-before.Exchanges) / n
	return figures, nil
}

// countersOf returns the sum of what all nodes counted.
func countersOf(nodes []*wakebell.System) (sum wakebelltype.Counters) {
	for _, sys := range nodes {
		for _, c := range sys.Counters() {
			sum.Empty += c.Empty
			sum.Peeks += c.Peeks
			sum.FallbackDelivered += c.FallbackDelivered
			sum.Exchanges += c.Exchanges
		}
	}
	return sum
}

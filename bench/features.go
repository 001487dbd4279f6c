package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
)

const (
	remindedTimes   = 50_000 // reminders of a run
	remindedActors  = 1_000
	remindedCallers = 50

	recurringSchedules = 50_000
	recurringTopics    = 10

	gateTurns   = 10_000
	gateCallers = 8 // each through a connection of its own, as a process has
)

// features is what the work costs that is built on timers and leases.
func features() []trial {
	return []trial{
		{name: "reminders", about: "reminders of 1,000 actors: set by 50 callers, one in a call; due at once, and answered", contenders: []contender{
			{"set", setReminders}, {"fired", fireReminders},
		}},
		{name: "recurring", about: "recurring schedules on 10 topics that are due at the same instant", contenders: []contender{
			{"fired", fireRecurring},
		}},
		{name: "gates", about: "empty turns at one gate, for which 8 processes wait", contenders: []contender{
			{"hand-offs", handGates},
		}},
	}
}

// reminders is a System with reminders, and actors that acknowledge them.
type reminders struct {
	*wakebell.System
	to    []reminder.Recipient
	acked atomic.Int64
	close func()
}

func newReminders(w *world) (*reminders, error) {
	rdb := w.client(0)
	conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	actors := quietSystem()
	sys, err := wakebell.New(actors, conn, wakebell.Config{Reminders: &reminder.Config{Node: "bench", MaxConcurrent: 200}})
	if err != nil {
		return nil, err
	}
	r := &reminders{System: sys, close: func() { actors.Shutdown(); _ = rdb.Close() }}
	props := actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(*messages.Reminder); ok {
			c.Respond(m.Ack())
			r.acked.Add(1)
		}
	})
	for i := range remindedActors {
		pid, err := actors.Root.SpawnNamed(props, fmt.Sprintf("cart-%d", i))
		if err != nil {
			return nil, err
		}
		r.to = append(r.to, reminder.Actor(pid))
	}
	return r, nil
}

// set sets n reminders.
func (r *reminders) set(ctx context.Context, n int, when reminder.When) error {
	return calls(n, remindedCallers, func(i int) error {
		_, err := r.Reminders().Set(ctx, r.to[i%len(r.to)], fmt.Sprintf("n-%d", i/len(r.to)), when, wrapperspb.String("100 bytes: "+timerID(i)+timerID(i)))
		return err
	})
}

func setReminders(ctx context.Context, w *world) (sample, error) {
	r, err := newReminders(w)
	if err != nil {
		return nil, err
	}
	defer r.close()
	n := w.many(remindedTimes)
	return w.measure(ctx, n, func() error { return r.set(ctx, n, reminder.In(time.Hour)) })
}

func fireReminders(ctx context.Context, w *world) (sample, error) {
	r, err := newReminders(w)
	if err != nil {
		return nil, err
	}
	defer r.close()
	n := w.many(remindedTimes)
	if err := r.set(ctx, n, reminder.In(0)); err != nil {
		return nil, err
	}
	s, err := w.measure(ctx, n, func() error {
		if err := r.Start(ctx); err != nil {
			return err
		}
		return until(ctx, func() bool { return r.acked.Load() >= int64(n) && ackedBy(r.System) >= int64(n) })
	})
	return s, errors.Join(err, r.Stop())
}

// fireRecurring puts schedules, and measures from the instant at which they are due until the
// scheduler of a node has put a timer on its topic for each.
func fireRecurring(ctx context.Context, w *world) (sample, error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }() // the figures are taken
	conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	n := w.many(recurringSchedules)
	due := time.Now().Add(time.Minute).Truncate(time.Second)
	if err := putRecurring(ctx, conn, n, due); err != nil {
		return nil, err
	}
	var fired atomic.Int64
	sys, err := wakebell.New(quietSystem(), conn, wakebell.Config{Scheduler: &recurring.SchedulerConfig{
		OnFire: func(recurring.Run) { fired.Add(1) },
	}})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(sys.Start(ctx), wait(ctx, time.Until(due))); err != nil {
		return nil, errors.Join(err, sys.Stop())
	}
	s, err := w.measure(ctx, n, func() error {
		return until(ctx, func() bool { return fired.Load() >= int64(n) })
	})
	return s, errors.Join(err, sys.Stop())
}

func putRecurring(ctx context.Context, conn *connection.Connection, n int, due time.Time) error {
	schedules, err := recurring.New(conn)
	if err != nil {
		return err
	}
	rule := recurring.Rule{Every: time.Hour, Start: due}
	list := make([]recurring.Schedule, 0, batchSize)
	for i := range n {
		topic := wakebell.NewTopic[string](fmt.Sprintf("topic-%d", i%recurringTopics))
		list = append(list, topic.Recurring(fmt.Sprintf("schedule-%06d", i), rule, "a report of the last hour"))
		if len(list) == cap(list) || i == n-1 {
			if err := schedules.Put(ctx, list...); err != nil {
				return err
			}
			list = list[:0]
		}
	}
	return nil
}

// handGates takes turns at a gate, each of which ends as soon as it begins.
func handGates(ctx context.Context, w *world) (sample, error) {
	var callers []*gate.Gates
	for range gateCallers {
		rdb := w.client(4)
		defer func() { _ = rdb.Close() }() // the figures are taken
		conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
		if err != nil {
			return nil, err
		}
		gates, err := gate.New(conn, gate.Config{})
		if err != nil {
			return nil, err
		}
		callers = append(callers, gates)
	}
	n := w.many(gateTurns)
	s, err := w.measure(ctx, n, func() error {
		return calls(n, gateCallers, func(i int) error {
			return callers[i%gateCallers].With(ctx, "gate", func(context.Context, uint64) error { return nil })
		})
	})
	for _, gates := range callers {
		err = errors.Join(err, gates.Close())
	}
	return s, err
}

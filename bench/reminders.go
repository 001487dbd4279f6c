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
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
)

const (
	remindedTimes   = 50_000 // reminders of a run
	remindedActors  = 1_000
	remindedCallers = 50
)

// reminding is what reminders of actors cost.
func reminding() trial {
	return trial{name: "reminders", about: "reminders of 1,000 actors: set by 50 callers, one in a call; due at once, and answered", contenders: []contender{
		{"set", setReminders}, {"fired", fireReminders},
	}}
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

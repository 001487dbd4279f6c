package wakebell

import (
	"context"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Run starts the System, waits until ctx is done or another goroutine calls Stop, and
// stops it. It returns the error of Start, unless ctx or a Stop ended it, or else the
// error of Stop.
func (s *System) Run(ctx context.Context) error {
	err := s.Start(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.stopping:
	}
	return s.Stop()
}

// Start checks that Redis can store the timers, and starts the actors. ctx bounds
// Start, not the System. A System starts once: a second Start returns ErrStarted,
// unless the first one failed. A Stop meanwhile ends Start with ErrNotRunning.
func (s *System) Start(ctx context.Context) error {
	if !s.claimStart() {
		return ErrStarted
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	checked := s.check(ctx) // without the lock, because it may wait for Redis
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.spawn(checked)
	s.started = err == nil
	return err
}

// claimStart reports whether this Start may proceed; one at a time may.
func (s *System) claimStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.ending() {
		return false
	}
	s.started = true
	return true
}

// spawn starts the actors, unless the check failed or Stop was called.
func (s *System) spawn(checked error) error {
	switch {
	case s.ending():
		return fmt.Errorf("start: %w", ErrNotRunning)
	case checked != nil:
		return fmt.Errorf("start: %w", checked)
	}
	runtime, err := actors.Start(s.actors, actors.Config{
		Gates:   &s.actorGates,
		Name:    s.cfg.Name,
		Topics:  s.actorTopics(),
		Hints:   hints{s},
		Events:  s.store,
		Node:    nodeName(s.cfg.Name),
		Version: moduleVersion(),
		OnDead:  s.onDead(),
		Timers:  s.reminding.Guard(requests{s.client, s.gates}),
		Beats:   s.schedulers(),
		Owner:   s,
		Logger:  s.on.Logger,
		Random:  s.hooks.Random,
		Metrics: s.on.Metrics,

		Records: s.store, Incarnation: uuid.NewString(),

		Reminders: s.reminding.Read,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if _, err := runtime.Gates(); err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), runtime.Stop())
	}
	s.runtime, s.unobserve = runtime, s.observe(runtime)
	watching, unwatch := context.WithCancel(context.Background()) //nolint:forbidigo // Stop ends it
	s.unwatch = unwatch
	s.watches.Go(func() { s.watchShards(watching) })
	s.watches.Go(func() { s.auditJoins(watching) })
	return nil
}

// checkAgain is the interval of the checks while Redis is unavailable.
const checkAgain = 250 * time.Millisecond

func (s *System) check(ctx context.Context) error {
	deadline := time.Now().Add(s.cfg.WaitForRedis)
	for logged := false; ; {
		err := s.checkOnce(ctx, s.cfg.Handlers...)
		if err == nil {
			err = s.learnPolled(ctx)
		}
		if err == nil {
			err = s.reconcile(ctx)
		}
		if err == nil || !errors.Is(err, ErrUnavailable) || !time.Now().Before(deadline) {
			return err
		}
		if !logged {
			logged = true
			s.on.Logger.WarnContext(ctx, "redis is unavailable; waiting for it", "err", err, "duration", s.cfg.WaitForRedis)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(checkAgain):
		}
	}
}

// checkOnce checks the topics and queues of handlers, and divides topics into shards.
func (s *System) checkOnce(ctx context.Context, handlers ...Handler) error {
	var topics []string
	var queues []wakebelltype.QueueKeys
	for _, h := range handlers {
		if h.set.queue == nil {
			if err := s.divide(ctx, h); err != nil {
				return err
			}
		} else {
			name := h.set.queue.name
			name.Name = s.on.Prefix + name.Name
			queues = append(queues, name)
		}
		if h.set.queue != nil {
			continue
		}
		names, err := s.physical(ctx, h)
		if err != nil {
			return err
		}
		topics = append(topics, names...)
	}
	if err := s.store.Check(ctx, topics); err != nil {
		return err
	}
	return queuestore.Check(ctx, s.store, queues)
}

// Stop drains and stops the System. The gateway refuses new requests and answers
// the accepted ones. The pollers stop claiming timers and wait up to DrainTimeout
// for running handlers; then the handlers' contexts are cancelled with the cause
// ErrDraining, and their timers are released for other nodes; those of actors and
// subscribers that do not answer are left to their leases. If handlers did not
// return, the error wraps ErrUnfinished and names their timers.
//
// Stop may be called before Start, and more than once: later calls wait for the
// first and return its error.
func (s *System) Stop() error {
	return s.end(func(runtime *actors.Runtime) error {
		drained, err := runtime.Shutdown(s.cfg.DrainTimeout)
		return errors.Join(err, unfinished(drained))
	})
}

// end ends the runtime once; later calls wait for the first.
func (s *System) end(how func(*actors.Runtime) error) error {
	s.mu.Lock()
	if s.ending() {
		s.mu.Unlock()
		<-s.stopped
		return s.stopErr
	}
	close(s.stopping)
	runtime := s.runtime
	s.mu.Unlock()

	defer close(s.stopped)
	if runtime != nil {
		s.unwatch()
		s.watches.Wait()
		s.stopErr = how(runtime)
		s.unobserve()
	}
	return s.stopErr
}

// ending reports whether Stop has begun. Stop begins under the lock.
func (s *System) ending() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

func unfinished(d *messages.Drained) error {
	var names []string
	for _, t := range d.GetTopics() {
		for _, id := range t.GetUnfinished() {
			names = append(names, fmt.Sprintf("%q of %q", id, t.GetTopic()))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnfinished, strings.Join(names, ", "))
}

// kill ends the System without a drain; its leases expire.
func (s *System) kill() error {
	return s.end((*actors.Runtime).Stop)
}

// The intervals at which a node looks for joins that are to be audited.
const (
	auditEvery  = 5 * time.Second       // while there are joins
	auditNone   = 30 * time.Second      // otherwise
	auditLeast  = 50 * time.Millisecond // while some wait for it
	auditDenied = 10 * time.Minute      // of a Redis user without the right to their list
)

// auditJoins audits joins of any topics until the System stops: those of topics without nodes
// wait for others, too.
func (s *System) auditJoins(ctx context.Context) {
	idle := max(auditEvery, s.hooks.Idle)
	tick := time.NewTimer(backoff.Jitter(idle, 0.5, randv2.Float64()))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.audits:
		}
		next, err := s.client.joins.Audit(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrDenied) && !errors.Is(err, ErrUnavailable) {
			s.on.Logger.WarnContext(ctx, "joins could not be audited", "err", err)
		}
		switch {
		case errors.Is(err, ErrDenied): // each try counts as a failed script
			tick.Reset(max(idle, auditDenied))
		case err != nil:
			tick.Reset(idle)
		case next < 0:
			tick.Reset(max(idle, auditNone))
		default:
			tick.Reset(min(max(next, auditLeast), idle))
		}
	}
}

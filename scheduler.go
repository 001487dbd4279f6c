package wakebell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/reminder"
)

// defaultMaxInterval is that of RedBeat.
const defaultMaxInterval = 300 * time.Second

// lockToken returns the token of RedBeat's lock, in the format of RedBeat. All
// nodes with the same keys share it.
func lockToken(k timers.Keyspace) string {
	sum := sha256.Sum256([]byte("wakebell " + k.Beat))
	return hex.EncodeToString(sum[:16])
}

// schedulers returns the configuration of an actor for each part of the schedules; none
// without Config.Scheduler.
func (s *System) schedulers() []scheduler.Config {
	if s.cfg.Scheduler == nil {
		return nil
	}
	store := schedulestore.New(s.shards)                // without retries: the actors retry
	asking := schedulestore.New(s.client.store).Parts() // with retries
	hints := scheduler.NewHints(store.Listen)
	var configs []scheduler.Config
	for i, part := range store.Parts() {
		cfg := s.firing(part, asking[i].Shares)
		configs = append(configs, scheduler.Config{
			Schedule: func() scheduler.Schedule { return firing.New(cfg) },
			Listen:   hints.Of(i),
		})
	}
	return configs
}

// firing returns the configuration of the engine of a part.
func (s *System) firing(part *schedulestore.Store, shares func(context.Context, string) bool) firing.Config {
	b := s.cfg.Scheduler
	maker := firing.Maker{Prefix: s.on.Prefix, Limit: s.on.PayloadLimit, Celery: s.on.Celery, Shares: shares, Tracer: s.tracer}
	cfg := firing.Config{
		Store: part, Maker: maker, Log: s.on.Logger, Zone: s.on.Zone,
		MaxInterval: b.MaxInterval, LookEvery: s.hooks.Idle, Metrics: s.on.Metrics,
	}
	if cfg.MaxInterval == 0 {
		cfg.MaxInterval = defaultMaxInterval
	}
	if b.TakeLock {
		cfg.Token = lockToken(s.store.Keys())
	}
	if b.OnFire != nil {
		cfg.OnFire = func(f firing.Fire) { s.onFire(recurring.Run{Name: f.Name, Due: f.Due, Fired: f.Fired, Number: f.Run}) }
	}
	return cfg
}

// onFire calls SchedulerConfig.OnFire, whose panic must not stop the scheduler.
func (s *System) onFire(run recurring.Run) {
	defer func() {
		if r := recover(); r != nil {
			s.on.Logger.Error("OnFire panicked", "schedule", run.Name, "panic", fmt.Sprint(r))
		}
	}()
	s.cfg.Scheduler.OnFire(run)
}

// reconcile stores the schedules of the configuration, and deletes those that an
// earlier configuration of the same owner stored.
func (s *System) reconcile(ctx context.Context) error {
	b := s.cfg.Scheduler
	if b == nil {
		return nil
	}
	if err := schedulestore.New(s.client.store).Check(ctx); err != nil {
		return err
	}
	if b.Schedules == nil {
		return nil
	}
	deleted, err := s.client.schedules.Reconcile(ctx, b.Owner, b.Schedules...)
	for _, name := range deleted {
		s.on.Logger.InfoContext(ctx, "recurring schedule deleted: it is no longer configured", "schedule", name, "owner", b.Owner)
	}
	return err
}

// Reminders returns the System's reminders. Without Config.Reminders, their calls
// return reminder.ErrDisabled.
func (s *System) Reminders() *reminder.Reminders { return s.reminders }

// remind makes the System's Reminders, and returns the configuration with their handlers.
func (s *System) remind(cfg Config) Config {
	s.reminders, s.reminding = reminder.Hosted(cfg.Reminders, hosted.Node{
		Conn: s.on, Actors: s.actors, Name: cfg.Name, Store: s.client.store, Schedules: s.client.schedules,
		Code: convert.CodeOf, Nack: nack, Reject: Reject, Unreadable: ErrUnreadable,
	})
	parts := s.reminding
	cfg.Handlers = slices.Clip(cfg.Handlers)
	for _, topic := range parts.Topics {
		cfg.Handlers = append(cfg.Handlers, Handle(NewTopic[*messages.KeptReminder](topic), s.deliverReminder,
			MaxConcurrent(parts.MaxConcurrent), MaxAttempts(parts.MaxAttempts), RetryBackoff(parts.RetryInitial, parts.RetryLimit)))
	}
	return cfg
}

func (s *System) deliverReminder(ctx context.Context, t Timer[*messages.KeptReminder]) error {
	schedule, _ := t.Headers.Get(firing.HeaderSchedule)
	header, _ := t.Headers.Get(firing.HeaderRun)
	run, _ := strconv.ParseUint(header, 10, 64) // 0 for a one-time reminder
	var trace map[string]string
	if d, ok := t.delivery.(delivered); ok {
		trace = d.span.trace(ctx)
	}
	return s.reminding.Deliver(ctx, hosted.Reminder{
		Body: t.Body, Raw: t.Raw, Activation: t.Activation, Attempt: t.Attempt, Schedule: schedule, Run: run, Trace: trace,
	})
}

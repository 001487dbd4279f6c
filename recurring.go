package wakebell

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// recurring carries out requests about recurring schedules.
func (r requests) recurring(ctx context.Context, request messages.Request) (messages.Answer, error) {
	schedules := r.client.schedules
	switch m := request.(type) {
	case *messages.PutRecurringRequest:
		all := make([]recurring.Schedule, len(m.GetSchedules()))
		for i, s := range m.GetSchedules() {
			if s == nil {
				return nil, argument.Invalid("schedules", "number %d is nil", i)
			}
			all[i] = convert.Recurring(s)
		}
		ctx = r.client.on.Edge.Trace(ctx, m.GetTrace())
		return &messages.PutRecurringResponse{Request: m.GetRequest()}, schedules.Put(ctx, all...)
	case *messages.DeleteRecurringRequest:
		return &messages.DeleteRecurringResponse{Request: m.GetRequest()}, schedules.Delete(ctx, m.GetName())
	case *messages.EnableRecurringRequest:
		enable := schedules.Pause
		if m.GetEnabled() {
			enable = schedules.Resume
		}
		return &messages.EnableRecurringResponse{Request: m.GetRequest()}, enable(ctx, m.GetName())
	case *messages.RunRecurringRequest:
		if len(m.GetKey()) > maxKey {
			return nil, argument.Invalid("key", "%d bytes, at most %d", len(m.GetKey()), maxKey)
		}
		ctx = r.client.on.Edge.Trace(ctx, m.GetTrace())
		run, err := schedules.RunNow(messages.WithOnce(ctx, m.GetKey()), m.GetName())
		return &messages.RunRecurringResponse{
			Request: m.GetRequest(), Name: text.Valid(run.Name), Due: convert.Timestamp(run.Due), Fired: convert.Timestamp(run.Fired), Run: run.Number,
		}, err
	case *messages.GetRecurringRequest:
		state, err := schedules.Get(ctx, m.GetName())
		return &messages.GetRecurringResponse{Request: m.GetRequest(), Schedule: convert.RecurringStateMessage(state)}, err
	case *messages.ListRecurringRequest:
		return listRecurring(m, schedules.List(ctx, wakebelltype.Page{After: m.GetAfter()}))
	case gateway.VisibleRecurring:
		return listRecurring(m.ListRecurringRequest, visibleSchedules(ctx, schedules, m))
	case *messages.PreviewRecurringRequest:
		instants, err := schedules.Preview(ctx, m.GetName(), int(min(m.GetCount(), math.MaxInt32)))
		answer := &messages.PreviewRecurringResponse{Request: m.GetRequest()}
		for _, at := range instants {
			answer.Instants = append(answer.Instants, timestamppb.New(at))
		}
		return answer, err
	default:
		return nil, argument.Invalid("message", "the gateway does not accept %T", m)
	}
}

// visibleSchedules yields the schedules of a listing that its sender may know.
func visibleSchedules(ctx context.Context, all *recurring.Schedules, m gateway.VisibleRecurring) iter.Seq2[recurring.State, error] {
	return func(yield func(recurring.State, error) bool) {
		for name, err := range all.Names(ctx, wakebelltype.Page{After: m.GetAfter()}) {
			if err == nil && !m.Sees(name) {
				continue
			}
			var state recurring.State
			if err == nil {
				state, err = all.Get(ctx, name)
			}
			if errors.Is(err, recurring.ErrNotFound) {
				continue // it was deleted meanwhile
			}
			state.Cursor = name
			if !yield(state, err) {
				return
			}
		}
	}
}

func listRecurring(m *messages.ListRecurringRequest, all iter.Seq2[recurring.State, error]) (messages.Answer, error) {
	if m.GetLimit() > paging.MaxPage {
		return nil, argument.Invalid("limit", "%d, want 1 to %d", m.GetLimit(), paging.MaxPage)
	}
	limit := int(cmp.Or(m.GetLimit(), recurringPage))
	answer := &messages.ListRecurringResponse{Request: m.GetRequest()}
	for state, err := range all {
		if err != nil {
			return nil, err
		}
		answer.Schedules = append(answer.Schedules, convert.RecurringStateMessage(state))
		// A name that a message cannot have cannot be the cursor of the next page.
		if len(answer.GetSchedules()) >= limit && utf8.ValidString(state.Cursor) {
			answer.Next = state.Cursor
			break
		}
	}
	return answer, nil
}

// recurringPage is how many schedules a page has by default.
const recurringPage = 100

// publish carries out a publish request. If the queue is full, the answer has the
// messages that were published.
func (r requests) publish(ctx context.Context, m *messages.PublishRequest) (messages.Answer, error) {
	out, err := r.client.queues.Publish(r.client.on.Edge.Trace(ctx, m.GetTrace()), convert.PublishDrafts(m)...)
	if err != nil && !errors.Is(err, queue.ErrFull) {
		return nil, err
	}
	answer := &messages.PublishResponse{Request: m.GetRequest()}
	for _, p := range out {
		answer.Messages = append(answer.Messages, &messages.PublishedMessage{Id: text.Valid(p.ID), Fresh: p.Fresh})
	}
	return answer, nil
}

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
	cfg.Handlers = slices.Clone(cfg.Handlers) // the System refers to them, and the caller may change its slice
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

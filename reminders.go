package wakebell

import (
	"context"
	"strconv"

	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/gatewayconv"
	"github.com/wakebell/wakebell/internal/moduleonly"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
)

// Reminders returns the System's reminders. Without Config.Reminders, their calls
// return reminder.ErrDisabled.
func (s *System) Reminders() *reminder.Reminders { return s.reminders }

// remind adds the handlers of reminders to the configuration. New sets the store,
// the schedules and the limit of the node later.
func (s *System) remind(cfg *Config) *moduleonly.ReminderNode {
	node := &moduleonly.ReminderNode{
		Actors: s.actors, Name: cfg.Name, Prefix: cfg.Prefix,
		Code: gatewayconv.CodeOf, Nack: nack, Reject: Reject, Unreadable: ErrUnreadable,
	}
	reminders, parts := moduleonly.Reminders(cfg.Reminders, node)
	s.reminders, s.reminding = reminders.(*reminder.Reminders), parts
	handlers := cfg.Handlers[:len(cfg.Handlers):len(cfg.Handlers)]
	for _, topic := range parts.Topics {
		handlers = append(handlers, Handle(NewTopic[*messages.KeptReminder](topic), s.deliverReminder,
			MaxConcurrent(parts.MaxConcurrent), MaxAttempts(parts.MaxAttempts), RetryBackoff(parts.RetryInitial, parts.RetryLimit)))
	}
	cfg.Handlers = handlers
	return node
}

func (s *System) deliverReminder(ctx context.Context, t Timer[*messages.KeptReminder]) error {
	schedule, _ := t.Headers.Get(firing.HeaderSchedule)
	header, _ := t.Headers.Get(firing.HeaderRun)
	run, _ := strconv.ParseUint(header, 10, 64) // 0 for a one-time reminder
	var trace map[string]string
	if d, ok := t.delivery.(delivered); ok {
		trace = d.span.trace(ctx)
	}
	return s.reminding.Deliver(ctx, moduleonly.ReminderTimer{
		Body: t.Body, Raw: t.Raw, Activation: t.Activation, Attempt: t.Attempt, Schedule: schedule, Run: run, Trace: trace,
	})
}

package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/reminder"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops"
)

// Reminders are durable timers of actors: one for each recipient and name, until
// the recipient has acknowledged it. Its calls wait for Redis, and work whether
// or not the System is started; in Receive an actor uses RemindMe. Without
// Config.Reminders they fail with ErrNoReminders.
type Reminders struct {
	system *System
	cfg    *RemindersConfig // nil: there are none

	node    Topic[*messages.KeptReminder] // those of actors, kept here
	cluster Topic[*messages.KeptReminder] // those of identities
}

// Reminders are those that the System keeps.
func (s *System) Reminders() *Reminders { return s.reminders }

// PID is the actor that RemindMe sends to, at the well-known name
// wakebell/reminders (the System's name before it), from the Start of a System
// that keeps reminders. An actor in a process without a System, which reaches
// this one by package remote, sends it a *messages.SetReminder or ForgetReminder,
// and is itself reminded.
func (r *Reminders) PID() *actor.PID { return reminders.PID(r.system.actors, r.system.cfg.Name) }

// Set sets a reminder, in place of what the recipient has under name, and tells
// when it is due. When is In or At. After an error it may be set or not, and may
// be set again. Errors: ErrInvalid, ErrAutomaticName, ErrNoReminders, or those of
// Client.Schedule.
func (r *Reminders) Set(ctx context.Context, to Recipient, name string, when ScheduleOption, msg proto.Message) (due time.Time, err error) {
	k, err := r.keep(to, name, msg)
	if err != nil {
		return time.Time{}, err
	}
	d, err := k.draft(when)
	if err != nil {
		return time.Time{}, err
	}
	return k.set(ctx, d)
}

// SetEvery is Set for a reminder that comes again and again; see RemindEvery.
func (r *Reminders) SetEvery(ctx context.Context, to Recipient, name string, when recurring.Rule, msg proto.Message) error {
	k, err := r.keep(to, name, msg)
	if err != nil {
		return err
	}
	return k.setEvery(ctx, k.topic.Recurring(k.schedule, when, k.body))
}

// Forget removes what the recipient has under name, and reports whether there
// was anything.
func (r *Reminders) Forget(ctx context.Context, to Recipient, name string) (found bool, err error) {
	k, err := r.named(to, name)
	if err != nil {
		return false, err
	}
	return k.forget(ctx)
}

// kept is one reminder, as it is kept.
type kept struct {
	*Reminders
	to       Recipient
	name     string
	topic    Topic[*messages.KeptReminder]
	id       string // of the timer of one that comes once
	schedule string // of one that comes again and again
	body     *messages.KeptReminder
}

// named finds a reminder by who has it and its name.
func (r *Reminders) named(to Recipient, name string) (*kept, error) {
	if r.cfg == nil {
		return nil, ErrNoReminders
	}
	if r.here(to.Address) {
		to.Address = ""
	}
	if name == "" {
		return nil, invalid("reminder", "it has no name")
	}
	if err := to.Validate(); err != nil {
		return nil, fmt.Errorf("%w: reminder %s: %w", ErrInvalid, clip(name), err)
	}
	k := &kept{Reminders: r, to: to, name: name, topic: r.node, id: reminder.ID(to, name)}
	if to.Kind != "" {
		k.topic = r.cluster
	}
	k.schedule = r.scheduled(k.topic) + k.id
	if n := len(r.system.cfg.Prefix + k.schedule); n > redisops.MaxScheduleName {
		return nil, invalid("reminder", "%s of %s: %d bytes with who it is for, at most %d", clip(name), clip(to.String()), n, redisops.MaxScheduleName)
	}
	return k, nil
}

// scheduled is what the names of the recurring reminders of a topic begin with.
func (r *Reminders) scheduled(topic Topic[*messages.KeptReminder]) string {
	return topic.name + "/"
}

// here reports whether an address is this process's.
func (r *Reminders) here(address string) bool {
	return address == "" || address == r.system.actors.Address() || address == nowhere
}

// nowhere is the address of actors of a system that does not listen.
const nowhere = "nonhost"

// keep is a reminder with what it reminds of.
func (r *Reminders) keep(to Recipient, name string, msg proto.Message) (*kept, error) {
	k, err := r.named(to, name)
	if err != nil {
		return nil, err
	}
	if msg == nil || !msg.ProtoReflect().IsValid() {
		return nil, invalid("message", "nil")
	}
	full := msg.ProtoReflect().Descriptor().FullName()
	if _, err := protoregistry.GlobalTypes.FindMessageByName(full); err != nil {
		return nil, invalid("message", "%s: the type is not registered, so that nobody could read it", full)
	}
	what, err := anypb.New(msg)
	if err != nil {
		return nil, invalid("message", "%v", err)
	}
	return k.with(what), nil
}

func (k *kept) with(what *anypb.Any) *kept {
	k.body = reminder.Body(k.to, &messages.KeptReminder{Name: k.name, Message: what})
	return k
}

// draft is the timer of one that comes once.
func (k *kept) draft(when ScheduleOption) (Draft, error) {
	var d Draft
	if when == nil {
		return d, invalid("when", "nil; want In or At")
	}
	if err := when(&d); err != nil {
		return d, err
	}
	if !d.planned || d.policy == redisops.Debounce {
		return d, invalid("when", "want In or At")
	}
	d = k.topic.Draft(k.body, when, ID(k.id))
	_, err := d.entry(k.system.client.limit)
	return d, err
}

// set puts the new one there before it takes the old one away: what fails in
// between loses none.
func (k *kept) set(ctx context.Context, d Draft) (time.Time, error) {
	stored, err := k.system.client.Schedule(ctx, d)
	if err != nil {
		return time.Time{}, err
	}
	_, err = k.deleteSchedule(ctx)
	return stored[0].Due, err
}

func (k *kept) setEvery(ctx context.Context, s recurring.Schedule) error {
	if err := k.recurring().Put(ctx, s); err != nil {
		return err
	}
	_, err := k.topic.Cancel(ctx, k.system.client, k.id)
	return err
}

func (k *kept) forget(ctx context.Context) (found bool, err error) {
	presence, err := k.topic.Cancel(ctx, k.system.client, k.id)
	if err != nil {
		return false, err
	}
	recurring, err := k.deleteSchedule(ctx)
	return recurring || presence != Absent, err
}

func (k *kept) deleteSchedule(ctx context.Context) (found bool, err error) {
	err = k.recurring().Delete(ctx, k.schedule)
	if errors.Is(err, recurring.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (r *Reminders) recurring() *recurring.Schedules { return r.system.client.schedules }

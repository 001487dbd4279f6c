package wakebell

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/wakebell/wakebell/internal/reminder"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// ReminderState is a reminder as it is kept.
type ReminderState struct {
	To   Recipient
	Name string

	// Message is what it reminds of; List leaves it out.
	Message *anypb.Any

	// Due is when it comes next: the instant it was set for, that of its next
	// attempt, the end of the wait for an answer; of a recurring one, the next
	// instant that it has.
	Due  time.Time
	Rule string // of a recurring one, as State has it; empty: it comes once

	// Of one that comes once: where its timer stands, how often it was delivered,
	// and why the last time did not do.
	State     State
	Attempts  int
	LastError string
}

// Get reads the reminder that a recipient has under name; ErrNotFound where it
// has none.
func (r *Reminders) Get(ctx context.Context, to Recipient, name string) (ReminderState, error) {
	k, err := r.named(to, name)
	if err != nil {
		return ReminderState{}, err
	}
	info, content, err := r.system.client.Get(ctx, k.topic.name, k.id)
	if errors.Is(err, ErrNotFound) {
		return k.every(ctx)
	}
	if err != nil {
		return ReminderState{}, err
	}
	state := k.once(info)
	body, err := k.topic.codec.Decode(content.Body, content.ContentType)
	state.Message = body.GetMessage()
	return state, err
}

func (k *kept) once(info Info) ReminderState {
	return ReminderState{
		To: k.to, Name: k.name, Due: info.Due, State: info.State, Attempts: info.Attempts, LastError: info.LastError,
	}
}

// every reads a recurring one.
func (k *kept) every(ctx context.Context) (ReminderState, error) {
	_, e, err := k.system.client.hand().Read(ctx, k.schedule)
	if errors.Is(err, recurring.ErrNotFound) {
		err = fmt.Errorf("%w: reminder %s of %s", ErrNotFound, clip(k.name), clip(k.to.String()))
	}
	if err != nil {
		return ReminderState{}, err
	}
	state := ReminderState{To: k.to, Name: k.name, Due: e.Due(), Rule: e.Rule(), State: StatePending}
	raw, contentType := e.Body()
	body, err := k.topic.codec.Decode(raw, contentType)
	state.Message = body.GetMessage()
	return state, err
}

// List yields the reminders of a recipient, or of the zero Recipient those of
// all that this node delivers to; first those that come once, by Due. It reads
// all of those, so it is for people and tools. An error is yielded last.
func (r *Reminders) List(ctx context.Context, to Recipient) iter.Seq2[ReminderState, error] {
	return func(yield func(ReminderState, error) bool) {
		if r.cfg == nil {
			yield(ReminderState{}, ErrNoReminders)
			return
		}
		if r.here(to.Address) {
			to.Address = ""
		}
		topics := []Topic[*messages.KeptReminder]{r.node}
		if r.cfg.Cluster != nil {
			topics = append(topics, r.cluster)
		}
		for _, topic := range topics {
			for info, err := range r.system.client.List(ctx, topic.name, Filter{}) {
				if err != nil {
					yield(ReminderState{}, err)
					return
				}
				k, ok := r.found(info.ID, to)
				if ok && !yield(k.once(info), nil) {
					return
				}
			}
		}
		for name, err := range r.recurring().Names(ctx) {
			var state ReminderState
			k, ok := r.foundEvery(name, topics, to)
			if err == nil && ok {
				state, err = k.every(ctx)
			}
			if errors.Is(err, ErrNotFound) || (err == nil && !ok) {
				continue
			}
			if !yield(state, err) || err != nil {
				return
			}
		}
	}
}

// found is the reminder of an id, if it is for to.
func (r *Reminders) found(id string, to Recipient) (*kept, bool) {
	whose, name, ok := reminder.Parse(id)
	if !ok || (to != Recipient{} && to != whose) {
		return nil, false
	}
	k, err := r.named(whose, name)
	return k, err == nil
}

func (r *Reminders) foundEvery(schedule string, topics []Topic[*messages.KeptReminder], to Recipient) (*kept, bool) {
	for _, topic := range topics {
		if id, ok := strings.CutPrefix(schedule, r.scheduled(topic)); ok {
			if k, ok := r.found(id, to); ok {
				return k, true
			}
		}
	}
	return nil, false
}

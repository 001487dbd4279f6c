package reminder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// State is a reminder as it is stored.
type State struct {
	To   Recipient
	Name string

	// Message is the message of the reminder. List leaves it out.
	Message *anypb.Any

	// Due is the next instant: the one it was set for, that of its next attempt,
	// the end of the wait for an answer, or the next instant of a recurring
	// reminder.
	Due time.Time

	// RuleText is the rule of a recurring reminder, as in recurring.State; empty:
	// it is a one-time reminder.
	RuleText string

	// Status, Attempts and LastError describe the timer of a one-time reminder:
	// its status, the number of deliveries so far, and the error of the last
	// failure. A recurring reminder has the status Pending.
	Status    Status
	Attempts  int
	LastError string

	// Cursor continues a listing after this reminder; see Page. Only List sets it.
	Cursor string
}

// Status is the status of a one-time reminder.
type Status string

const (
	// Pending waits for its instant.
	Pending Status = "pending"
	// Retrying waits for its next attempt.
	Retrying Status = "retrying"
	// Running waits for the answer of the recipient.
	Running Status = "running"
)

// Get returns the reminder of a recipient with this name. Errors:
// wakebell.ErrNotFound, or those of Set.
func (r *Reminders) Get(ctx context.Context, to Recipient, name string) (State, error) {
	s, err := r.named(to, name)
	if err != nil {
		return State{}, err
	}
	timer, err := r.node.Store.Get(ctx, r.node.Prefix+s.topic, s.id)
	if errors.Is(err, wakebelltype.ErrNotFound) {
		return s.recurringState(ctx, true)
	}
	if err != nil {
		return State{}, err
	}
	state := s.state(timer)
	env, _ := envelope.Decode(timer.Payload) // a malformed one is decoded as a whole
	state.Message, err = s.message(ctx, payload.Encoded{ID: s.id, Headers: env.Headers, Body: env.Body, ContentType: env.ContentType})
	return state, err
}

func (s *stored) state(t timers.Timer) State {
	state := State{
		To: s.to, Name: s.name, Due: t.Due, Status: Pending, Attempts: t.Claims, LastError: t.LastError,
	}
	switch {
	case t.Running:
		state.Status = Running
	case t.Claims > 0:
		state.Status = Retrying
	}
	return state
}

// recurringState reads a recurring reminder.
func (s *stored) recurringState(ctx context.Context, withMessage bool) (State, error) {
	found, err := s.node.Schedules.Get(ctx, s.schedule)
	if errors.Is(err, recurring.ErrNotFound) {
		err = fmt.Errorf("%w: reminder %s of %s", wakebelltype.ErrNotFound, argument.Quote(s.name), argument.Quote(s.to.String()))
	}
	if err != nil {
		return State{}, err
	}
	state := State{To: s.to, Name: s.name, Due: found.Next, RuleText: found.RuleText, Status: Pending}
	if found.Fault != "" {
		return state, fmt.Errorf("reminder %s of %s: %s", argument.Quote(s.name), argument.Quote(s.to.String()), found.Fault)
	}
	if !withMessage {
		return state, nil
	}
	ours, err := s.scheduleFields(ctx, s.schedule)
	if err != nil {
		return State{}, err
	}
	headers := append(convert.HeaderList(ours.Headers), wakebelltype.Header{Key: firing.HeaderSchedule, Value: s.schedule})
	state.Message, err = s.message(ctx, payload.Encoded{Kind: wakebelltype.OutgoingRecurring, Headers: headers, Body: ours.Body, ContentType: ours.ContentType})
	return state, err
}

// message decodes the stored message of a reminder.
func (s *stored) message(ctx context.Context, e payload.Encoded) (*anypb.Any, error) {
	e.Topic = s.topic
	plain, err := s.node.Payloads.Decode(ctx, e)
	if err != nil {
		return nil, err
	}
	body, err := bodies.Decode(plain.Body, plain.ContentType)
	return body.GetMessage(), err
}

// parse returns the reminder with this id, if it is for to.
func (r *Reminders) parse(id string, to Recipient) (*stored, bool) {
	recipient, name, ok := parseID(id)
	if !ok || (to != Recipient{} && to != recipient) {
		return nil, false
	}
	s, err := r.named(recipient, name)
	return s, err == nil
}

// parseSchedule returns the recurring reminder of a schedule, if it is for to.
func (r *Reminders) parseSchedule(schedule string, to Recipient) (*stored, bool) {
	for _, topic := range r.topics() {
		if id, ok := strings.CutPrefix(schedule, schedulePrefix(topic)); ok {
			if s, ok := r.parse(id, to); ok {
				return s, true
			}
		}
	}
	return nil, false
}

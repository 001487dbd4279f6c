package wakebell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/beat"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/reminder"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// ErrNobodyReminded says that there is no actor of the name, or no way to where
// it is. It is what a reminder is retried for, and in the end its dead letter's
// reason.
var ErrNobodyReminded = reminders.ErrUnreachable

var errUnanswered = errors.New("the reminder was not answered in time")

// deliver hands a reminder that is due to who is to be reminded, and waits for
// the answer, which is its verdict.
func (r *Reminders) deliver(ctx context.Context, t Timer[*messages.KeptReminder]) error {
	to, err := reminder.Read(t.Body)
	if err == nil && to.Kind == "" && to.Address == "" {
		// An actor elsewhere may know a type that this process does not.
		_, err = protoregistry.GlobalTypes.FindMessageByURL(t.Body.GetMessage().GetTypeUrl())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	stands, err := r.stands(ctx, t)
	if err != nil || !stands {
		return err
	}
	m := &messages.Reminder{
		Name: t.Body.GetName(), Message: t.Body.GetMessage(), Due: timestamp(t.Activation), Attempt: count(t.Attempt), Run: runOf(t),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.AckTimeout, errUnanswered)
	defer cancel()
	answer, err := r.ask(ctx, to, m)
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", clip(m.GetName()), clip(to.String()), err)
	}
	return answered(answer, m.GetDelivery())
}

// stands reports whether a reminder is still what was set last: a run of a
// recurring one that waits for its next attempt is not taken away with it.
func (r *Reminders) stands(ctx context.Context, t Timer[*messages.KeptReminder]) (bool, error) {
	schedule, again := t.Headers.Get(beat.HeaderSchedule)
	if !again {
		return true, nil
	}
	_, e, err := r.system.client.hand().Read(ctx, schedule)
	switch {
	case errors.Is(err, recurring.ErrNotFound):
		return false, nil
	case errors.Is(err, recur.ErrSyntax): // it will not fire again, but this one has fired
		return true, nil
	case err != nil:
		return false, err
	}
	body, _ := e.Body()
	return bytes.Equal(body, t.Raw), nil
}

// runOf is the number of the run of a recurring one.
func runOf(t Timer[*messages.KeptReminder]) uint64 {
	header, _ := t.Headers.Get(beat.HeaderRun)
	run, _ := strconv.ParseUint(header, 10, 64) // 0 where there is none
	return run
}

// ask asks the recipient, by the way that leads there.
func (r *Reminders) ask(ctx context.Context, to Recipient, m *messages.Reminder) (any, error) {
	if to.Kind != "" {
		if r.cfg.Cluster == nil { // somebody has put it in the wrong topic
			return nil, ErrNobodyReminded
		}
		m.Delivery = rand.Uint64() //nolint:gosec // it tells deliveries apart, it keeps nobody out
		return r.cfg.Cluster.Request(ctx, to.Kind, to.ID, m)
	}
	pid := r.system.actors.NewLocalPID(to.ID)
	if !r.here(to.Address) {
		pid = actor.NewPID(to.Address, to.ID)
	}
	return reminders.Remind(ctx, r.system.actors, r.system.cfg.Name, pid, m)
}

// answered is the verdict in an answer.
func answered(answer any, delivery uint64) error {
	verdict, ok := answer.(interface{ GetDelivery() uint64 })
	if !ok || verdict.GetDelivery() != delivery {
		return fmt.Errorf("unexpected answer %T", answer)
	}
	switch a := answer.(type) {
	case *messages.Ack:
		return nil
	case *messages.Nack:
		return nack(a)
	case *messages.Reject:
		return Reject(errors.New(a.GetReason()))
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
}

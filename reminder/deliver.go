package reminder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// ErrUnreachable reports that the recipient does not exist or cannot be reached. A
// reminder is retried for it, and has it as the reason of its dead letter.
var ErrUnreachable = reminders.ErrUnreachable

var errUnanswered = errors.New("the reminder was not answered in time")

// deliver sends a due reminder to its recipient and waits for the answer, which is
// the verdict on the timer.
func (r *Reminders) deliver(ctx context.Context, t hosted.Reminder) error {
	to, err := recipientOf(t.Body)
	if err == nil && to.Kind == "" && to.Address == "" {
		// An actor of another process may know a type that this process does not.
		_, err = protoregistry.GlobalTypes.FindMessageByURL(t.Body.GetMessage().GetTypeUrl())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", r.node.Unreadable, err)
	}
	current, err := r.isCurrent(ctx, t)
	if err != nil || !current {
		return err
	}
	m := &messages.Reminder{
		Name: t.Body.GetName(), Message: t.Body.GetMessage(), Due: convert.Timestamp(t.Activation), Attempt: convert.Count(t.Attempt), Run: t.Run, Trace: t.Trace,
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.AckTimeout, errUnanswered)
	defer cancel()
	answer, err := r.ask(ctx, to, m)
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", argument.Quote(m.GetName()), argument.Quote(to.String()), err)
	}
	return r.verdict(answer, m.GetDelivery())
}

// isCurrent reports whether the reminder is still the one that was set last. A run
// of a recurring reminder that waits for its next attempt is not removed with the
// schedule.
func (r *Reminders) isCurrent(ctx context.Context, t hosted.Reminder) (bool, error) {
	if t.Schedule == "" {
		return true, nil
	}
	ours, err := r.scheduleFields(ctx, t.Schedule)
	switch {
	case errors.Is(err, recurring.ErrNotFound):
		return false, nil
	case errors.Is(err, recur.ErrSyntax): // the schedule fires no more, but this run was fired
		return true, nil
	case err != nil:
		return false, err
	}
	return bytes.Equal(ours.Body, t.Raw), nil
}

// scheduleFields reads the fields of a schedule that RedBeat does not have.
func (r *Reminders) scheduleFields(ctx context.Context, name string) (recur.Ours, error) {
	dump, err := r.node.Schedules.Export(ctx, name)
	if err != nil {
		return recur.Ours{}, err
	}
	return recur.ReadOurs(dump.Wakebell)
}

// ask sends the reminder to the recipient and returns its answer.
func (r *Reminders) ask(ctx context.Context, to Recipient, m *messages.Reminder) (any, error) {
	if to.Kind != "" {
		if r.cfg.Cluster == nil { // it is in the wrong topic
			return nil, ErrUnreachable
		}
		m.Delivery = rand.Uint64() //nolint:gosec // it tells deliveries apart, it is no secret
		return r.cfg.Cluster.Request(ctx, to.Kind, to.ID, m)
	}
	pid := r.node.Actors.NewLocalPID(to.ID)
	if !r.isLocal(to.Address) {
		pid = actor.NewPID(to.Address, to.ID)
	}
	return reminders.Remind(ctx, r.node.Actors, r.node.Name, pid, m)
}

// verdict returns the verdict in an answer.
func (r *Reminders) verdict(answer any, delivery uint64) error {
	verdict, ok := answer.(interface{ GetDelivery() uint64 })
	if !ok || verdict.GetDelivery() != delivery {
		return fmt.Errorf("unexpected answer %T", answer)
	}
	switch a := answer.(type) {
	case *messages.Ack:
		return nil
	case *messages.Nack:
		return r.node.Nack(a)
	case *messages.Reject:
		return r.node.Reject(errors.New(a.GetReason()))
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
}

package reminder

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/recurring"
)

// ErrDisabled reports that the System has no reminders: its Config.Reminders is
// nil.
var ErrDisabled = errors.New("the system has no reminders: Config.Reminders is nil")

// Set sets a reminder for the actor with the context c: when it is due, the actor
// receives msg in a *messages.Reminder and answers it, for example with
// c.Respond(m.Ack()). It replaces the actor's reminder with the same name, and
// outlives the actor and the process. The type of msg must be registered, as
// every generated type is.
//
// Set does not wait for Redis, so that Receive does not block. It returns errors
// of its arguments. The outcome arrives as a message within 10 s:
// *messages.SetReminderResponse or *messages.ReminderFailed, which is logged too. To
// wait for the outcome, use Reminders.Set.
//
// If an actor sets a reminder while it handles another one, that one's Ack takes
// effect after the request is done. If the request fails, the handled reminder is
// delivered again, so the actor need not wait for the SetReminderResponse. This does
// not hold for reminders that a Cluster delivered.
//
// With one recipient in to, the reminder is for that recipient instead. An actor
// of a cluster, whose name is generated, needs its identity there, such as
// Identity("cart", "17").
//
// Errors: wakebell.ErrInvalid, also for an actor with a generated name
// (ErrAutomaticName); ErrDisabled; wakebell.ErrNotRunning.
func Set(c actor.Context, name string, when When, msg proto.Message, to ...Recipient) error {
	return request(c, to, func(r *Reminders, to Recipient) (reminders.Call, error) {
		return r.setting(to, name, when, msg)
	})
}

// SetEvery is Set for a recurring reminder: a recurring schedule, which nodes with
// a Config.Scheduler fire. A run that is not acknowledged is retried beside the
// runs that follow; recurring.OverlapSkip skips those.
func SetEvery(c actor.Context, name string, rule recurring.Rule, msg proto.Message, to ...Recipient) error {
	return request(c, to, func(r *Reminders, to Recipient) (reminders.Call, error) {
		return r.settingEvery(to, name, rule, msg)
	})
}

// Forget removes the actor's reminder with this name, one-time or recurring. Like
// Set it does not wait: the actor receives *messages.ForgetReminderResponse or
// *messages.ReminderFailed. A delivery that has begun may still arrive. Errors are
// those of Set.
func Forget(c actor.Context, name string, to ...Recipient) error {
	return request(c, to, func(r *Reminders, to Recipient) (reminders.Call, error) {
		return r.forgetting(to, name)
	})
}

// request sends a call for the actor of c to the actor of the reminders.
func request(c actor.Context, to []Recipient, prepare func(*Reminders, Recipient) (reminders.Call, error)) error {
	switch {
	case c == nil:
		return argument.Invalid("context", "nil")
	case len(to) == 0:
		to = []Recipient{Actor(c.Self())}
	case len(to) > 1:
		return argument.Invalid("to", "%d recipients, want one", len(to))
	}
	r, err := remindersOf(c.ActorSystem())
	if err != nil {
		return err
	}
	call, err := prepare(r, to[0])
	if err != nil {
		return err
	}
	c.Request(r.PID(), call)
	return nil
}

// remindersOf returns the reminders of the System with the default name, or of
// the only other System that has reminders.
func remindersOf(system *actor.ActorSystem) (*Reminders, error) {
	err := actors.ErrNotRunning
	var found []*Reminders
	for name, owner := range actors.Owners(system) {
		s, ok := owner.(interface{ Reminders() *Reminders })
		switch {
		case !ok:
		case s.Reminders().cfg == nil:
			err = ErrDisabled
		case name == actors.DefaultName:
			return s.Reminders(), nil
		default:
			found = append(found, s.Reminders())
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	default:
		return nil, argument.Invalid("System", "%d of this ActorSystem have reminders, and none is called %q: use Reminders.Set", len(found), actors.DefaultName)
	}
}

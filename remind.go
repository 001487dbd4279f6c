package wakebell

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/reminder"
	"github.com/wakebell/wakebell/recurring"
)

var (
	// ErrNoReminders says that the System keeps no reminders: its Config has no
	// Reminders.
	ErrNoReminders = errors.New("the system keeps no reminders: Config.Reminders is nil")

	// ErrAutomaticName says that an actor, or one above it, has a name that
	// protoactor gave it: after a restart that names somebody else.
	ErrAutomaticName = reminder.ErrAutomatic
)

// RemindMe has the actor whose context c is reminded of msg when it is due, in
// place of what it has under name: it gets a *messages.Reminder and answers it,
// with c.Respond(m.Ack()), say. The reminder outlives the actor and the process.
// When is In or At; msg is of a type that is registered, as generated ones are.
//
// It does not wait: an actor that waits for Redis in Receive does nothing else,
// and with a Redis that is down that takes seconds. What is wrong with the
// arguments it returns. How it went comes as mail, within 10 s: ReminderSet, or
// ReminderFailed, which is logged too. An actor that must know first calls
// Reminders.Set, and waits.
//
// One that sets a reminder while it has another to answer need not look at that
// mail: its Ack counts when what it asked for before is done, and if that fails
// the reminder that it has comes again. (Not where a Cluster delivered it.)
//
// An actor of a cluster, whose names are all automatic, gives its identity as
// the last argument, as in ToIdentity("cart", "17"); so does who sets a
// reminder for another.
//
// Errors: ErrInvalid, also for an actor with an automatic name
// (ErrAutomaticName); ErrNoReminders; ErrNotRunning.
func RemindMe(c actor.Context, name string, when ScheduleOption, msg proto.Message, to ...Recipient) error {
	return askReminders(c, to, func(r *Reminders, to Recipient) (reminders.Call, error) {
		return r.setting(to, name, when, msg)
	})
}

// RemindEvery is RemindMe for a reminder that comes again and again. It is a
// recurring schedule, which nodes with a Config.Scheduler fire. A run that is not
// acknowledged is retried as any reminder is, beside those that follow;
// OverlapSkip leaves those out.
func RemindEvery(c actor.Context, name string, when recurring.Rule, msg proto.Message, to ...Recipient) error {
	return askReminders(c, to, func(r *Reminders, to Recipient) (reminders.Call, error) {
		return r.settingEvery(to, name, when, msg)
	})
}

// ForgetReminder removes the reminder that the actor has under name, whether it
// comes once or again and again. It does not wait, as RemindMe does not; the
// actor gets ReminderForgotten or ReminderFailed. One that is on its way may
// still come. Errors are those of RemindMe.
func ForgetReminder(c actor.Context, name string, to ...Recipient) error {
	return askReminders(c, to, func(r *Reminders, to Recipient) (reminders.Call, error) {
		return r.forgetting(to, name)
	})
}

// askReminders has the reminders do something for an actor.
func askReminders(c actor.Context, to []Recipient, prepare func(*Reminders, Recipient) (reminders.Call, error)) error {
	switch {
	case c == nil:
		return invalid("context", "nil")
	case len(to) == 0:
		to = []Recipient{ToActor(c.Self())}
	case len(to) > 1:
		return invalid("to", "%d recipients, want one", len(to))
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

// remindersOf finds those of the System of DefaultName, or of the only other one
// that has any.
func remindersOf(system *actor.ActorSystem) (*Reminders, error) {
	err := ErrNotRunning
	var found []*Reminders
	for name, owner := range actors.Owners(system) {
		s, ok := owner.(*System)
		switch {
		case !ok:
		case s.reminders.cfg == nil:
			err = ErrNoReminders
		case name == DefaultName:
			return s.reminders, nil
		default:
			found = append(found, s.reminders)
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	default:
		return nil, invalid("System", "%d of this ActorSystem keep reminders, and none is called %q: use Reminders.Set", len(found), DefaultName)
	}
}

// Recipient is who is reminded: the actor of an ID, here or at an Address, or
// the identity ID of a Kind in a cluster. ToActor and ToIdentity make it.
type Recipient = reminder.Recipient

// ToActor is an actor: of this node, or of the process at its address, which
// must be linked to this one; see package remote.
func ToActor(pid *actor.PID) Recipient {
	return Recipient{ID: pid.GetId(), Address: pid.GetAddress()}
}

// ToIdentity is an identity of a cluster, whatever node has its actor.
func ToIdentity(kind, identity string) Recipient { return Recipient{Kind: kind, ID: identity} }

package wakebell

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// What the actor of the reminders does for others.

// setting is a Set that is checked, and not done yet.
func (r *Reminders) setting(to Recipient, name string, when ScheduleOption, msg proto.Message) (reminders.Call, error) {
	k, err := r.keep(to, name, msg)
	if err != nil {
		return reminders.Call{}, err
	}
	return k.setting(when, 0)
}

func (k *kept) setting(when ScheduleOption, request uint64) (reminders.Call, error) {
	d, err := k.draft(when)
	return k.call(request, func(ctx context.Context) (messages.Answer, error) {
		due, err := k.set(ctx, d)
		return &messages.ReminderSet{Request: request, Name: k.name, Due: timestamp(due)}, err
	}), err
}

// settingEvery is a SetEvery that is checked, and not done yet.
func (r *Reminders) settingEvery(to Recipient, name string, when recurring.Rule, msg proto.Message) (reminders.Call, error) {
	k, err := r.keep(to, name, msg)
	if err != nil {
		return reminders.Call{}, err
	}
	return k.settingEvery(when, 0)
}

func (k *kept) settingEvery(when recurring.Rule, request uint64) (reminders.Call, error) {
	s := k.topic.Recurring(k.schedule, when, k.body)
	return k.call(request, func(ctx context.Context) (messages.Answer, error) {
		return &messages.ReminderSet{Request: request, Name: k.name}, k.setEvery(ctx, s)
	}), s.Validate()
}

// forgetting is a Forget that is checked, and not done yet.
func (r *Reminders) forgetting(to Recipient, name string) (reminders.Call, error) {
	k, err := r.named(to, name)
	if err != nil {
		return reminders.Call{}, err
	}
	return k.forgetting(0), nil
}

func (k *kept) forgetting(request uint64) reminders.Call {
	return k.call(request, func(ctx context.Context) (messages.Answer, error) {
		found, err := k.forget(ctx)
		return &messages.ReminderForgotten{Request: request, Name: k.name, Found: found}, err
	})
}

func (k *kept) call(request uint64, do func(context.Context) (messages.Answer, error)) reminders.Call {
	return reminders.Call{
		Key: k.topic.name + "/" + k.id, Name: k.name, Size: proto.Size(k.body), Request: request,
		Do: func(ctx context.Context) messages.Answer {
			answer, err := do(ctx)
			if err == nil {
				return answer
			}
			return &messages.ReminderFailed{Request: request, Name: k.name, Error: messages.Failure(codeOf(err), err.Error())}
		},
	}
}

// reader is what the actor of the reminders reads requests with; nil: there is
// none.
func (r *Reminders) reader() func(reminders.Request, *actor.PID) (reminders.Call, error) {
	if r.cfg == nil {
		return nil
	}
	return r.read
}

// read reads what an actor asks for by message: of a reminder of its own, which
// is all that one of another process may ask for.
func (r *Reminders) read(m reminders.Request, from *actor.PID) (reminders.Call, error) {
	if from == nil {
		return reminders.Call{}, invalid("sender", "none; nobody would be reminded")
	}
	k, err := r.named(ToActor(from), m.GetName())
	if err != nil {
		return reminders.Call{}, err
	}
	switch m := m.(type) {
	case *messages.ForgetReminder:
		return k.forgetting(m.GetRequest()), nil
	case *messages.SetReminder:
		return k.read(m)
	default:
		return reminders.Call{}, invalid("message", "reminders take no %T", m)
	}
}

func (k *kept) read(m *messages.SetReminder) (reminders.Call, error) {
	if m.GetMessage().MessageName() == "" {
		return reminders.Call{}, invalid("message", "absent")
	}
	k.with(m.GetMessage())
	switch when := m.GetWhen().(type) {
	case *messages.SetReminder_At:
		return k.setting(at(when.At), m.GetRequest())
	case *messages.SetReminder_In:
		return k.setting(in(when.In), m.GetRequest())
	case *messages.SetReminder_Every:
		every := when.Every.AsDuration()
		if err := when.Every.CheckValid(); err != nil || every <= 0 {
			return reminders.Call{}, invalid("every", "%v, want above 0", every)
		}
		return k.settingEvery(recurring.Rule{Every: every}, m.GetRequest())
	case *messages.SetReminder_Cron:
		return k.settingEvery(recurring.Rule{Cron: when.Cron, Zone: m.GetZone()}, m.GetRequest())
	default:
		return k.setting(In(0), m.GetRequest())
	}
}

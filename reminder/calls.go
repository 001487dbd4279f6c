package reminder

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// setting returns the call of a Set whose arguments are valid.
func (r *Reminders) setting(to Recipient, name string, when When, msg proto.Message) (reminders.Call, error) {
	s, err := r.entry(to, name, msg)
	if err != nil {
		return reminders.Call{}, err
	}
	return s.setting(when, 0)
}

func (s *stored) setting(when When, request uint64) (reminders.Call, error) {
	timer, err := s.timer(when)
	return s.call(request, func(ctx context.Context) (messages.Answer, error) {
		due, err := s.set(ctx, timer)
		return &messages.SetReminderResponse{Request: request, Name: s.name, Due: convert.Timestamp(due)}, err
	}), err
}

// settingEvery returns the call of a SetEvery whose arguments are valid.
func (r *Reminders) settingEvery(to Recipient, name string, rule recurring.Rule, msg proto.Message) (reminders.Call, error) {
	s, err := r.entry(to, name, msg)
	if err != nil {
		return reminders.Call{}, err
	}
	return s.settingEvery(rule, 0)
}

func (s *stored) settingEvery(rule recurring.Rule, request uint64) (reminders.Call, error) {
	schedule := s.recurring(rule)
	return s.call(request, func(ctx context.Context) (messages.Answer, error) {
		return &messages.SetReminderResponse{Request: request, Name: s.name}, s.setEvery(ctx, schedule)
	}), schedule.Validate()
}

// forgetting returns the call of a Forget whose arguments are valid.
func (r *Reminders) forgetting(to Recipient, name string) (reminders.Call, error) {
	s, err := r.named(to, name)
	if err != nil {
		return reminders.Call{}, err
	}
	return s.forgetting(0), nil
}

func (s *stored) forgetting(request uint64) reminders.Call {
	return s.call(request, func(ctx context.Context) (messages.Answer, error) {
		found, err := s.forget(ctx)
		return &messages.ForgetReminderResponse{Request: request, Name: s.name, Found: found}, err
	})
}

func (s *stored) call(request uint64, do func(context.Context) (messages.Answer, error)) reminders.Call {
	return reminders.Call{
		Key: s.topic + "/" + s.id, Name: s.name, Size: proto.Size(s.body), Request: request,
		Do: func(ctx context.Context) messages.Answer {
			answer, err := do(s.node.Edge.Trace(ctx, s.trace))
			if err == nil {
				return answer
			}
			return &messages.ReminderFailed{Request: request, Name: s.name, Error: messages.Failure(s.node.Code(err), err.Error())}
		},
	}
}

// read reads a request of an actor. An actor of another process may set its own
// reminders only.
func (r *Reminders) read(m reminders.Request, from *actor.PID) (reminders.Call, error) {
	if from == nil {
		return reminders.Call{}, argument.Invalid("sender", "none, so the recipient is unknown")
	}
	s, err := r.named(Actor(from), m.GetName())
	if err != nil {
		return reminders.Call{}, err
	}
	switch m := m.(type) {
	case *messages.ForgetReminderRequest:
		return s.forgetting(m.GetRequest()), nil
	case *messages.SetReminderRequest:
		return s.read(m)
	default:
		return reminders.Call{}, argument.Invalid("message", "reminders take no %T", m)
	}
}

func (s *stored) read(m *messages.SetReminderRequest) (reminders.Call, error) {
	if m.GetMessage().MessageName() == "" {
		return reminders.Call{}, argument.Invalid("message", "absent")
	}
	s.with(m.GetMessage())
	s.trace = m.GetTrace()
	switch when := m.GetWhen().(type) {
	case *messages.SetReminderRequest_At:
		return s.setting(whenAt(when.At), m.GetRequest())
	case *messages.SetReminderRequest_In:
		return s.setting(whenIn(when.In), m.GetRequest())
	case *messages.SetReminderRequest_Every:
		every := when.Every.AsDuration()
		if err := when.Every.CheckValid(); err != nil || every <= 0 {
			return reminders.Call{}, argument.Invalid("every", "%v, want above 0", every)
		}
		return s.settingEvery(recurring.Rule{Every: every}, m.GetRequest())
	case *messages.SetReminderRequest_Cron:
		return s.settingEvery(recurring.Rule{Cron: when.Cron, Zone: m.GetZone()}, m.GetRequest())
	default:
		return s.setting(In(0), m.GetRequest())
	}
}

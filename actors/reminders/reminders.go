// Package reminders has the actor that sets reminders and delivers them to actors.
// It makes no compatibility promise.
package reminders

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/messages"
)

// Request is a request of an actor by message: a SetReminderRequest or a
// ForgetReminderRequest.
type Request interface {
	messages.Request
	GetName() string
}

// Refused is a request that its sender has no right to. It is answered, and holds an Ack
// back, as one that fails.
type Refused struct {
	Request Request
	Fault   *messages.Error
}

// Call is an operation on a reminder for an actor, which a System sends to the
// reminders actor.
type Call struct {
	// Key names the reminder: calls with the same key run in the order of their
	// arrival.
	Key     string
	Name    string // of the reminder, for a failure
	Size    int    // bytes that it holds in memory
	Request uint64
	Timeout time.Duration // 0: 10 s

	// Do carries it out, and should return soon after ctx has ended. It answers a
	// failure with a *messages.ReminderFailed.
	Do func(ctx context.Context) messages.Answer
}

// PID is the PID of the reminders actor of the runtime of this name. The actor
// receives Call and Request, and delivers reminders to actors.
func PID(system *actor.ActorSystem, name string) *actor.PID {
	return system.NewLocalPID(name + "/" + Name)
}

// Name is the name of the actor below the supervisor.
const Name = "reminders"

// Causes for a reminder without an answer.
var (
	// ErrUnreachable says that the recipient does not exist or cannot be reached.
	ErrUnreachable = errors.New("recipient does not exist or is unreachable")

	ErrCrashed = errors.New("the actor of the reminders crashed")
)

// reminders is the actor that sets and delivers reminders. Its Receive never
// blocks: calls run in goroutines that it owns.
//
// A recipient usually sets its next reminder before it answers. So its Ack is
// held back until its earlier calls are done, and becomes a Nack if one failed: a
// reminder is removed only when its consequences are stored.
type reminders struct {
	env         *host.Env
	read        func(Request, *actor.PID) (Call, error)
	incarnation uint64 // messages of earlier incarnations are dropped

	self        *actor.PID
	root        *actor.RootContext
	ctx         context.Context // of this incarnation; parent of the calls' contexts
	cancel      context.CancelCauseFunc
	unsubscribe func()           // from protoactor's dead letters
	failureLog  loglimit.Limiter // for failures without a sender

	calls      gateway.Calls
	queued     map[*gateway.Call]Call // calls that have not started
	recipients map[string]*recipient  // actors with a reminder or a call
	deliveries map[uint64]*delivery   // those that await an answer
}

// recipient is an actor with a reminder in delivery, or with a call.
type recipient struct {
	calls      int // that have not ended
	deliveries map[uint64]*delivery
}

// delivery is a reminder that awaits an answer.
type delivery struct {
	recipient string
	answers   chan<- any    // capacity 1
	ack       *messages.Ack // held back
	failed    string        // why a call of the recipient failed meanwhile
}

type (
	// deliver requests the delivery of a reminder.
	deliver struct {
		to      *actor.PID
		message *messages.Reminder
		answers chan<- any
	}
	// abandoned reports that the caller no longer waits for the answer.
	abandoned struct{ delivery uint64 }
	// undelivered reports that a reminder has become one of protoactor's dead
	// letters.
	undelivered struct {
		incarnation uint64
		delivery    uint64
	}
	// reminderDone reports that a call has ended.
	reminderDone struct {
		incarnation uint64
		call        *gateway.Call
		from        string
		failed      string
	}
)

// Remind has the reminders actor of the runtime of this name deliver a reminder
// to an actor, and waits for its answer: a *messages.Ack, Nack or Reject. It sets
// the number of the delivery. Errors: ErrUnreachable, or the cause of ctx.
func Remind(ctx context.Context, system *actor.ActorSystem, runtime string, to *actor.PID, m *messages.Reminder) (answer any, err error) {
	m.Delivery = rand.Uint64() // a number, not a secret
	answers := make(chan any, 1)
	pid := PID(system, runtime)
	system.Root.Send(pid, deliver{to: to, message: m, answers: answers})
	select {
	case answer = <-answers:
		if failed, ok := answer.(error); ok {
			return nil, failed
		}
		return answer, nil
	case <-ctx.Done():
		system.Root.Send(pid, abandoned{m.GetDelivery()})
		return nil, context.Cause(ctx)
	}
}

// Props returns the props of the actor; read decodes requests.
func Props(env *host.Env, read func(Request, *actor.PID) (Call, error)) *actor.Props {
	return env.Props(func(incarnation uint64) actor.Actor {
		return &reminders{env: env, read: read, incarnation: incarnation}
	})
}

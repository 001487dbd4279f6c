// Package reminders holds the actor that sets reminders for other actors, hands
// them out and waits for their answers.
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

// Request is what an actor asks for by message: a SetReminder or a
// ForgetReminder.
type Request interface {
	messages.Request
	GetName() string
}

// Call is something to be done to a reminder for an actor, which a
// System sends to Reminders.
type Call struct {
	// Key names the reminder: calls about the same are carried out in the order
	// in which they came.
	Key     string
	Name    string // of the reminder, for a failure
	Size    int    // bytes that it holds in memory
	Request uint64
	Timeout time.Duration // 0: 10 s

	// Do does it, and should return soon after ctx has ended. It answers with
	// a *messages.ReminderFailed what could not be done.
	Do func(ctx context.Context) messages.Answer
}

// PID is the PID of the reminders of the runtime of this name. Its actor
// takes Call and Request, and gives actors their reminders.
func PID(system *actor.ActorSystem, name string) *actor.PID {
	return system.NewLocalPID(name + "/" + Name)
}

// Name is the name of the actor below the supervisor.
const Name = "reminders"

// Why a reminder got no answer.
var (
	// ErrUnreachable says that there is no such actor, or no way to it.
	ErrUnreachable = errors.New("there is no such actor, or no way to it")

	ErrCrashed = errors.New("the actor of the reminders crashed")
)

// reminders is the actor that sets reminders for others and hands them out. Its
// Receive never blocks: what it is asked for is done in goroutines that it owns.
//
// An actor that is reminded usually sets its next reminder before it answers. So
// its Ack is held back until what it has asked for is done, and is a Nack if
// that failed: a reminder is gone only when what came of it is kept.
type reminders struct {
	env   *host.Env
	read  func(Request, *actor.PID) (Call, error)
	epoch uint64 // tells its messages from those of earlier incarnations

	self   *actor.PID
	root   *actor.RootContext
	ctx    context.Context // of this incarnation; every call has one under it
	cancel context.CancelCauseFunc
	deaf   func()           // ends the subscription to dead letters
	unread loglimit.Limiter // of failures without a sender

	calls gateway.Calls
	to    map[*gateway.Call]Call // those that have not begun
	who   map[string]*reminded   // those who are reminded, or have asked for something
	given map[uint64]*handed     // what awaits an answer
}

// reminded is an actor that has a reminder, or has asked for something.
type reminded struct {
	asked int // calls that are under way
	given map[uint64]*handed
}

// handed is a reminder in the hands of an actor.
type handed struct {
	to      string
	answers chan<- any    // has room for one
	ack     *messages.Ack // held back
	failed  string        // why something that the actor asked for meanwhile was not done
}

type (
	// give asks for a reminder to be handed out.
	give struct {
		to      *actor.PID
		message *messages.Reminder
		answers chan<- any
	}
	// notAwaited says that nobody waits for the answer any more.
	notAwaited struct{ delivery uint64 }
	// undelivered says that a reminder has become a dead letter of protoactor's.
	undelivered struct {
		epoch    uint64
		delivery uint64
	}
	// reminderDone says that a call is over.
	reminderDone struct {
		epoch  uint64
		call   *gateway.Call
		from   string
		failed string
	}
)

// Remind has the reminders of the runtime of this name hand one to an actor, and
// waits for its answer: a *messages.Ack, Nack or Reject. It names the delivery.
// Errors: ErrUnreachable, or the cause of ctx.
func Remind(ctx context.Context, system *actor.ActorSystem, runtime string, to *actor.PID, m *messages.Reminder) (answer any, err error) {
	m.Delivery = rand.Uint64() // it tells deliveries apart, it keeps nobody out
	answers := make(chan any, 1)
	pid := PID(system, runtime)
	system.Root.Send(pid, give{to: to, message: m, answers: answers})
	select {
	case answer = <-answers:
		if failed, ok := answer.(error); ok {
			return nil, failed
		}
		return answer, nil
	case <-ctx.Done():
		system.Root.Send(pid, notAwaited{m.GetDelivery()})
		return nil, context.Cause(ctx)
	}
}

// Props makes the actor; read reads what actors ask for by message.
func Props(env *host.Env, read func(Request, *actor.PID) (Call, error)) *actor.Props {
	return env.Props(func(epoch uint64) actor.Actor {
		return &reminders{env: env, read: read, epoch: epoch}
	})
}

package wakebell

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors"
	actorgateway "github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
)

// SystemOf returns the System with the name DefaultName in actorSystem, and
// whether there is one: from its Start to its Stop. An actor calls it with
// Context.ActorSystem. SystemNamed finds Systems with other names.
//
// The calls of the System's Client wait for Redis, and block an actor that makes
// them in Receive. To schedule without waiting, send a message to the System's
// Gateway.
func SystemOf(actorSystem *actor.ActorSystem) (*System, bool) {
	return SystemNamed(actorSystem, DefaultName)
}

// SystemNamed returns the System with this Config.Name in actorSystem, and
// whether there is one: from its Start to its Stop.
func SystemNamed(actorSystem *actor.ActorSystem, name string) (*System, bool) {
	if actorSystem == nil {
		return nil, false
	}
	owner, _ := actors.Owner(actorSystem, name)
	s, ok := owner.(*System)
	return s, ok
}

// Gateway returns the actor that carries out requests sent as messages. Its name
// is wakebell/gateway, where wakebell is the name of the System. It exists when
// Start has returned, whether or not the System has Handlers.
//
// The gateway accepts the requests of the gRPC service Timers:
// *messages.ScheduleRequest, CancelRequest, GetTimerRequest and so on. A message
// must not be changed after it was sent. The answer to a *messages.ScheduleRequest
// is a *messages.ScheduleResponse or a *messages.Error, and so on; see Answered
// and AnswerError. A request without a sender is carried out too, and its failure
// is logged. Requests about the same timer, recurring schedule or queue are
// carried out in the order in which they arrive, others concurrently.
//
// A request is answered within its timeout, by default 10 s. This process may
// have up to 1,024 requests waiting, and 64 MiB of waiting and running ones, less
// while remote principals have requests there; further ones are refused with
// ErrOverloaded, and after Stop has begun with ErrDraining. One request of up to
// 64 KiB is always accepted if this process has no other. If the gateway crashes or stops, the requests that it
// had accepted are answered with ErrUnavailable. A message that crashes the
// gateway gets no answer, so a future needs a timeout above that of the request.
func (s *System) Gateway() *actor.PID { return actorgateway.PID(s.actors, s.cfg.Name) }

// ErrOverloaded means that too many requests wait at the gateway; nothing was
// done.
var ErrOverloaded = convert.ErrOverloaded

// ErrConflict means that a request conflicts with another owner: its idempotency
// key was used for another request, or the node handles the topic itself.
// Nothing was done.
var ErrConflict = convert.ErrConflict

// Answered returns the answer to a request, as in
//
//	future := c.RequestFuture(sys.Gateway(), request, 15*time.Second)
//	scheduled, err := wakebell.Answered[*messages.ScheduleResponse](future.Result())
//
// Its errors are those of AnswerError, ErrNotRunning if there is no gateway, and
// context.DeadlineExceeded if the future timed out.
func Answered[A messages.Answer](answer any, err error) (A, error) {
	var none A
	switch {
	case errors.Is(err, actor.ErrDeadLetter):
		return none, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case errors.Is(err, actor.ErrTimeout):
		return none, fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case err != nil:
		return none, err
	}
	switch a := answer.(type) {
	case *messages.Error:
		return none, AnswerError(a)
	case A:
		return a, nil
	default:
		return none, fmt.Errorf("unexpected answer %T", answer)
	}
}

// AnswerError converts an Error of the gateway. The result wraps the error that
// the same call of a Client, of recurring.Schedules or of gate.Gates wraps
// (ErrInvalid, ErrNotFound and so on), or ErrOverloaded, ErrDraining, ErrConflict
// or context.DeadlineExceeded. For an unknown code it wraps none of them.
func AnswerError(e *messages.Error) error {
	return &answerError{text: e.GetMessage(), sentinel: convert.ErrorOf(e.GetCode())}
}

// answerError has the text of a *messages.Error.
type answerError struct {
	sentinel error // may be nil
	text     string
}

func (e *answerError) Error() string { return "gateway: " + e.text }
func (e *answerError) Unwrap() error { return e.sentinel }

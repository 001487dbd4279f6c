package wakebell

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// SystemOf returns the System of actorSystem, from its Start to its Stop: an actor
// calls it with its context's ActorSystem. It is the one whose Config.Name is
// DefaultName; SystemNamed finds the others.
//
// The calls of its Client wait for Redis, and an actor that waits in Receive
// does nothing else meanwhile. To schedule without waiting it sends a message
// to the System's Gateway.
func SystemOf(actorSystem *actor.ActorSystem) (*System, bool) {
	return SystemNamed(actorSystem, DefaultName)
}

// SystemNamed returns the System of this Config.Name of actorSystem, from its Start
// to its Stop.
func SystemNamed(actorSystem *actor.ActorSystem, name string) (*System, bool) {
	if actorSystem == nil {
		return nil, false
	}
	owner, _ := actors.Owner(actorSystem, name)
	s, ok := owner.(*System)
	return s, ok
}

// Gateway is the actor that schedules by message, at the well-known name
// wakebell/gateway (the System's name before it). It is there when Start has
// returned, whether or not the System has Handlers.
//
// It takes the requests of the gRPC service Timers: *messages.ScheduleRequest,
// CancelRequest, GetTimerRequest and so on. A message must not be changed once it is
// sent. The answer of *messages.ScheduleRequest is *messages.ScheduleResponse or
// *messages.Error, and so on; see Answered and AnswerError. A request without a sender is carried
// out too, and its failure logged. Requests about the same timer, recurring
// schedule or queue are carried out in the order in which they came, any others
// at the same time.
//
// Each is answered within its timeout, by default 10 s. When too many wait (a
// thousand, or 64 MiB) new ones are refused at once: ErrOverloaded; when Stop
// has begun: ErrDraining. When the gateway crashes or stops with requests that
// it has taken, they are answered: ErrUnavailable. Only the message that
// crashes it is not, so a future should have a timeout above the request's.
func (s *System) Gateway() *actor.PID { return gateway.PID(s.actors, s.cfg.Name) }

// ErrOverloaded says that too many requests wait at the gateway; nothing was
// begun.
var ErrOverloaded = errors.New("too many requests wait at the gateway")

// ErrConflict says that somebody else has what was asked for: an idempotency
// key that was used for another request, or a topic that the node handles
// itself. Nothing was done.
var ErrConflict = errors.New("somebody else has it")

// Answered reads the answer to a request, as in
//
//	future := c.RequestFuture(sys.Gateway(), request, 15*time.Second)
//	scheduled, err := wakebell.Answered[*messages.ScheduleResponse](future.Result())
//
// Errors are those of AnswerError; ErrNotRunning when there is no gateway; and
// one that wraps context.DeadlineExceeded when the future timed out.
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

// AnswerError is an Error of the gateway as an error that wraps what the same
// call of a Client, of Schedules or of Gates does (ErrInvalid, ErrNotFound, and
// so on), ErrOverloaded, ErrDraining, ErrConflict, context.DeadlineExceeded, or,
// for any other code, none of them.
func AnswerError(e *messages.Error) error {
	failed := &answerError{text: e.GetMessage()}
	for _, c := range codes {
		if c.code == e.GetCode() && failed.sentinel == nil {
			failed.sentinel = c.err
		}
	}
	return failed
}

// ErrorMessage is an error as it travels: what AnswerError makes an error of
// again that wraps the same. Its text is cut to 1,024 bytes.
func ErrorMessage(err error) *messages.Error { return messages.Failure(codeOf(err), err.Error()) }

// answerError has the text that the gateway gave.
type answerError struct {
	sentinel error // nil: none
	text     string
}

func (e *answerError) Error() string { return "gateway: " + e.text }
func (e *answerError) Unwrap() error { return e.sentinel }

// codes are the errors that have a code. An error that wraps several has the
// code of the first.
var codes = []struct {
	code messages.Code
	err  error
}{
	{messages.Code_CODE_INVALID, ErrInvalid},
	{messages.Code_CODE_NOT_FOUND, ErrNotFound},
	{messages.Code_CODE_UNAVAILABLE, ErrUnavailable}, // also of a dial that timed out
	{messages.Code_CODE_MEMORY_FULL, ErrMemoryFull},
	{messages.Code_CODE_WRONG_TYPE, ErrWrongType},
	{messages.Code_CODE_TOO_LARGE, ErrTooLarge},
	{messages.Code_CODE_DEADLINE, context.DeadlineExceeded},
	{messages.Code_CODE_OVERLOADED, ErrOverloaded},
	{messages.Code_CODE_DRAINING, ErrDraining},
	{messages.Code_CODE_CONFLICT, ErrConflict},
	{messages.Code_CODE_CONFLICT, ErrKeyUsed},
	{messages.Code_CODE_NO_SCHEDULE, recurring.ErrNotFound},
	{messages.Code_CODE_GATE_HELD, gate.ErrHeld},
	{messages.Code_CODE_TURN_LOST, gate.ErrTurnLost},
	{messages.Code_CODE_GATES_CLOSED, gate.ErrClosed},
	{messages.Code_CODE_FENCE_STALE, gate.ErrFenceStale},
	{messages.Code_CODE_FENCE_REGRESSED, gate.ErrFenceRegressed},
	{messages.Code_CODE_FENCE_UNKNOWN, gate.ErrFenceUnknown},
	{messages.Code_CODE_GATE_EXHAUSTED, gate.ErrExhausted},
	{messages.Code_CODE_DENIED, ErrDenied},
	{messages.Code_CODE_CHANNEL_DENIED, ErrChannelDenied},
	{messages.Code_CODE_UNSUPPORTED, ErrUnsupported},
	{messages.Code_CODE_FORBIDDEN, ErrForbidden},
}

func codeOf(err error) messages.Code {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	if errors.Is(err, context.Canceled) { // the gateway ended meanwhile
		return messages.Code_CODE_UNAVAILABLE
	}
	return messages.Code_CODE_INTERNAL
}

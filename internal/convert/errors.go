package convert

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	// ErrOverloaded is wakebell.ErrOverloaded.
	ErrOverloaded = errors.New("too many requests wait at the gateway")

	// ErrConflict is wakebell.ErrConflict.
	ErrConflict = errors.New("conflict: held by another owner")
)

// ErrorMessage converts an error to a message; wakebell.AnswerError converts it back
// to an error that wraps the same sentinel. The text is cut to 1,024 bytes.
func ErrorMessage(err error) *messages.Error { return messages.Failure(CodeOf(err), err.Error()) }

// ErrorOf returns the error that stands for a code, or nil for an unknown code.
func ErrorOf(code messages.Code) error {
	for _, c := range codes {
		if c.code == code {
			return c.err
		}
	}
	return nil
}

// codes maps errors to codes. An error that wraps several has the code of the
// first.
var codes = []struct {
	code messages.Code
	err  error
}{
	{messages.Code_CODE_INVALID, wakebelltype.ErrInvalid},
	{messages.Code_CODE_NO_SCHEDULE, recurring.ErrNotFound}, // before NOT_FOUND, which it wraps
	{messages.Code_CODE_NOT_FOUND, wakebelltype.ErrNotFound},
	{messages.Code_CODE_UNAVAILABLE, exchange.ErrUnavailable}, // before the deadline: a dial that timed out wraps both
	{messages.Code_CODE_MEMORY_FULL, wakebelltype.ErrMemoryFull},
	{messages.Code_CODE_WRONG_TYPE, wakebelltype.ErrWrongType},
	{messages.Code_CODE_TOO_LARGE, wakebelltype.ErrTooLarge},
	{messages.Code_CODE_DEADLINE, context.DeadlineExceeded},
	{messages.Code_CODE_OVERLOADED, ErrOverloaded},
	{messages.Code_CODE_DRAINING, poller.ErrDraining},
	{messages.Code_CODE_CONFLICT, ErrConflict},
	{messages.Code_CODE_CONFLICT, wakebelltype.ErrKeyUsed},
	{messages.Code_CODE_LEASE_LOST, poller.ErrLeaseLost},
	{messages.Code_CODE_LEASE_LOST, poller.ErrLeaseTooOld},
	{messages.Code_CODE_LEASE_LOST, poller.ErrCancelled},
	{messages.Code_CODE_LEASE_LOST, poller.ErrSuperseded},
	{messages.Code_CODE_LEASE_LOST, poller.ErrSettled},
	{messages.Code_CODE_LEASE_LOST, poller.ErrStopped},
	{messages.Code_CODE_GATE_HELD, gate.ErrHeld},
	{messages.Code_CODE_TURN_LOST, gate.ErrTurnLost},
	{messages.Code_CODE_GATES_CLOSED, gate.ErrClosed},
	{messages.Code_CODE_FENCE_STALE, gate.ErrFenceStale},
	{messages.Code_CODE_FENCE_REGRESSED, gate.ErrFenceRegressed},
	{messages.Code_CODE_FENCE_UNKNOWN, gate.ErrFenceUnknown},
	{messages.Code_CODE_GATE_EXHAUSTED, gate.ErrExhausted},
	{messages.Code_CODE_DENIED, wakebelltype.ErrDenied},
	{messages.Code_CODE_CHANNEL_DENIED, wakebelltype.ErrChannelDenied},
	{messages.Code_CODE_UNSUPPORTED, wakebelltype.ErrUnsupported},
	{messages.Code_CODE_FORBIDDEN, exchange.ErrForbidden},
}

// CodeOf returns the code of an error.
func CodeOf(err error) messages.Code {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	if errors.Is(err, context.Canceled) { // the gateway stopped
		return messages.Code_CODE_UNAVAILABLE
	}
	return messages.Code_CODE_INTERNAL
}

package wire

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell/messages"
)

// StatusOf converts an Error to a gRPC status, with the Error itself in the details.
func StatusOf(e *messages.Error) error {
	code, ok := map[messages.Code]codes.Code{
		messages.Code_CODE_INVALID:     codes.InvalidArgument,
		messages.Code_CODE_NOT_FOUND:   codes.NotFound,
		messages.Code_CODE_UNAVAILABLE: codes.Unavailable,
		messages.Code_CODE_MEMORY_FULL: codes.ResourceExhausted,
		messages.Code_CODE_WRONG_TYPE:  codes.FailedPrecondition,
		messages.Code_CODE_DEADLINE:    codes.DeadlineExceeded,
		messages.Code_CODE_OVERLOADED:  codes.ResourceExhausted,
		messages.Code_CODE_DRAINING:    codes.Unavailable,
		messages.Code_CODE_CONFLICT:    codes.AlreadyExists,
		messages.Code_CODE_LEASE_LOST:  codes.Aborted,

		messages.Code_CODE_NO_SCHEDULE:     codes.NotFound,
		messages.Code_CODE_GATE_HELD:       codes.FailedPrecondition,
		messages.Code_CODE_TURN_LOST:       codes.Aborted,
		messages.Code_CODE_GATES_CLOSED:    codes.Unavailable,
		messages.Code_CODE_FENCE_STALE:     codes.FailedPrecondition,
		messages.Code_CODE_FENCE_REGRESSED: codes.DataLoss,
		messages.Code_CODE_FENCE_UNKNOWN:   codes.FailedPrecondition,
		messages.Code_CODE_GATE_EXHAUSTED:  codes.ResourceExhausted,

		messages.Code_CODE_DENIED:         codes.FailedPrecondition,
		messages.Code_CODE_CHANNEL_DENIED: codes.FailedPrecondition,
		messages.Code_CODE_UNSUPPORTED:    codes.FailedPrecondition,
		messages.Code_CODE_TOO_LARGE:      codes.FailedPrecondition,

		messages.Code_CODE_FORBIDDEN: codes.PermissionDenied,
	}[e.GetCode()]
	if !ok {
		code = codes.Internal
	}
	plain := status.New(code, e.GetMessage())
	if whole, err := plain.WithDetails(e); err == nil {
		return whole.Err()
	}
	return plain.Err()
}

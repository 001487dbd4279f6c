package gateway

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
)

// timersOf returns how many timers a request is about.
func timersOf(request messages.Request) int {
	switch r := request.(type) {
	case *messages.ScheduleBatchRequest:
		return len(r.GetTimers())
	case *messages.CancelRequest:
		return len(r.GetIds())
	case *messages.PutRecurringRequest:
		return len(r.GetSchedules())
	case *messages.PublishRequest:
		return len(r.GetMessages())
	default:
		return 1
	}
}

// Check returns the size and the timeout of a request, or what is wrong with it.
func Check(request messages.Request) (size int, timeout time.Duration, fault *messages.Error) {
	if !request.ProtoReflect().IsValid() {
		return 0, 0, Failure(messages.Code_CODE_INVALID, "message: nil %T", request)
	}
	timeout = DefaultTimeout
	if t := request.GetTimeout(); t != nil {
		timeout = t.AsDuration()
		if t.CheckValid() != nil || timeout <= 0 || timeout > MaxTimeout {
			return 0, 0, Failure(messages.Code_CODE_INVALID, "timeout: %v, want above 0 and at most %v", timeout, MaxTimeout)
		}
	}
	if n := timersOf(request); n > MaxBatch {
		return 0, 0, Failure(messages.Code_CODE_INVALID, "timers: %d, at most %d in a request", n, MaxBatch)
	}
	// A message from this process may be malformed in ways that the wire format
	// does not allow.
	size, err := host.Recovered("reading the message", func() (int, error) { return proto.Size(request), nil })
	switch {
	case err != nil:
		return 0, 0, Failure(messages.Code_CODE_INVALID, "message: %v", err)
	case size > MaxRequestBytes:
		return 0, 0, Failure(messages.Code_CODE_INVALID, "message: %d bytes, at most %d", size, MaxRequestBytes)
	}
	return size, timeout, nil
}

package messages

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Request is a request that the gateway takes: one of gateway.proto, recurring.proto or
// queues.proto, one about joins of endings.proto, or a GuardTurnRequest.
type Request interface {
	proto.Message
	GetRequest() uint64
	GetTimeout() *durationpb.Duration
}

// Answer is an answer of the gateway: the response of a request, or an Error.
type Answer interface {
	proto.Message
	GetRequest() uint64
}

// maxErrorText is how long the message of an Error may be, in bytes.
const maxErrorText = 1024

// Failure returns an Error that fits its bound: the text is cut, and bytes that
// are not UTF-8 are replaced.
func Failure(code Code, message string) *Error {
	if len(message) > maxErrorText {
		message = message[:maxErrorText-len("…")] + "…"
	}
	return &Error{Code: code, Message: strings.ToValidUTF8(message, "?")}
}

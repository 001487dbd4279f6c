package wire

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// Question is a request with a number, which its response repeats.
type Question interface {
	proto.Message
	GetRequest() uint64
}

// AlertProtocolVersion is a TLS record with the fatal alert protocol_version.
var AlertProtocolVersion = []byte{21, 3, 1, 0, 2, 2, 70}

// AnswerWithin is how long a client waits for a response beyond the timeout of the
// request.
const AnswerWithin = 5 * time.Second

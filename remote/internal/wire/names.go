package wire

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// Question is what is answered with its number.
type Question interface {
	proto.Message
	GetRequest() uint64
}

// AlertProtocolVersion is a TLS record: the peer's protocol is not spoken here.
var AlertProtocolVersion = []byte{21, 3, 1, 0, 2, 2, 70}

// AnswerWithin is what a request has beyond its own timeout for its answer.
const AnswerWithin = 5 * time.Second

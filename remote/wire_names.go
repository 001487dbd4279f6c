package remote

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// question is what is answered with its number.
type question interface {
	proto.Message
	GetRequest() uint64
}

// alertProtocolVersion is a TLS record: the peer's protocol is not spoken here.
var alertProtocolVersion = []byte{21, 3, 1, 0, 2, 2, 70}

// answerWithin is what a request has beyond its own timeout for its answer.
const answerWithin = 5 * time.Second

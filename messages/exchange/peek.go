package exchange

import "time"

// PeekReply is the reply to a peek, which reads a source and changes nothing.
type PeekReply struct {
	// Now is the source's clock; zero if it was not read.
	Now time.Time

	// Next is as in a Reply.
	Next time.Duration
}

package exchange

import "time"

// PeekReply is the reply to a peek, which reads a source and changes nothing.
type PeekReply struct {
	// Now is the source's clock; zero if it was not read.
	Now time.Time

	// Next is as in a Reply.
	Next time.Duration
	// Overdue is for how long the first timer has been due, if Next is 0; 0: unknown.
	Overdue time.Duration
}

// Answered processes the answer to a peek that was sent at an instant, or its failure, and
// returns when to peek again; not ok: no more.
type Answered func(sent time.Time, answer PeekReply, err error) (next time.Time, ok bool)

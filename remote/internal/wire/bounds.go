package wire

import "time"

// Grace is how long the verdicts of an ended subscriber are still accepted: the
// notification of its end can overtake them.
const Grace = time.Second

// FrameOverhead and EnvelopeOverhead are upper bounds, in bytes, of what the
// encoding adds to a frame and to an envelope in it.
const (
	FrameOverhead    = 4096
	EnvelopeOverhead = 48
)

// MaxDeadLetters and MaxDeadLettersBytes bound one DeleteQueueDeadLettersRequest;
// a single dead letter may be larger.
const (
	MaxDeadLetters      = 1000
	MaxDeadLettersBytes = 1 << 20
)

// MaxKey is the maximum length of a key in bytes.
const MaxKey = 256

// DefaultTimeout and MaxTimeout are the default and the maximum of a request's timeout.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 10 * time.Minute
)

// MaxOverviews is the maximum number of topics in one request.
const MaxOverviews = 1000

// MaxShown is how many bytes of a peer's text errors and log messages show.
const MaxShown = 80

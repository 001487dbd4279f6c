package wire

import "time"

// Grace is for the verdicts of a subscriber that has ended: its end can
// overtake them.
const Grace = time.Second

// FrameOverhead and EnvelopeOverhead are what the encoding adds to a frame, and to an
// envelope in it, at the most.
const (
	FrameOverhead    = 4096
	EnvelopeOverhead = 48
)

// MaxDeadLetters and MaxDeadLettersBytes bound what goes in one DeleteQueueDeadLettersRequest;
// a single letter may be larger.
const (
	MaxDeadLetters      = 1000
	MaxDeadLettersBytes = 1 << 20
)

// MaxKey bounds a key, in bytes.
const MaxKey = 256

// DefaultTimeout and MaxTimeout are those of the gateway.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 10 * time.Minute
)

// MaxOverviews is how many topics a request is about.
const MaxOverviews = 1000

// MaxShown bounds, in bytes, how much of a text of a peer errors and log messages show.
const MaxShown = 80

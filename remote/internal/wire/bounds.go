package wire

import "time"

// Grace is for the verdicts of a subscriber that has ended: its end can
// overtake them.
const Grace = time.Second

// What the encoding adds to a frame, and to an envelope in it, at the most.
const FrameOverhead, EnvelopeOverhead = 4096, 48

// What goes in one DeleteQueueDeadLettersRequest, at the most; a single letter may be
// larger.
const MaxLetters, MaxLettersBytes = 1000, 1 << 20

// MaxKey bounds a key, in bytes.
const MaxKey = 256

// Those of the gateway.
const DefaultTimeout, MaxTimeout = 10 * time.Second, 10 * time.Minute

// MaxOverviews is how many topics a request is about.
const MaxOverviews = 1000

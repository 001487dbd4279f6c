package remote

import "time"

// grace is for the verdicts of a subscriber that has ended: its end can
// overtake them.
const grace = time.Second

// What the encoding adds to a frame, and to an envelope in it, at the most.
const frameOverhead, envelopeOverhead = 4096, 48

// What goes in one DeleteQueueDeadLettersRequest, at the most; a single letter may be
// larger.
const maxLetters, maxLettersBytes = 1000, 1 << 20

// maxKey bounds a key, in bytes.
const maxKey = 256

// Those of the gateway.
const defaultTimeout, maxTimeout = 10 * time.Second, 10 * time.Minute

// maxOverviews is how many topics a request is about.
const maxOverviews = 1000

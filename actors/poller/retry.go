package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
)

// Retry says how failures of a handler are retried.
type Retry struct {
	// Initial is the delay after the first failure; it doubles with each
	// further one, up to Max. Each is spread by ±20 %, so that timers that
	// failed together do not come back together.
	Initial, Max time.Duration

	// MaxFailures is the failure that makes a dead letter; at least 1.
	MaxFailures int
}

// delay is how long to wait after the failure that follows failures earlier
// ones. random is in [0, 1).
func (r Retry) delay(failures int, random float64) time.Duration {
	return host.Jitter(host.ExponentialDelay(r.Initial, failures, r.Max), 0.2, random)
}

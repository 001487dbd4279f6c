package actors

import (
	"math"
	"time"
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
	return spread(doubled(r.Initial, failures, r.Max), 0.2, random)
}

// doubled is initial · 2^n, at most limit.
func doubled(initial time.Duration, n int, limit time.Duration) time.Duration {
	d := float64(initial) * math.Pow(2, float64(min(n, 62)))
	return time.Duration(min(d, float64(limit)))
}

// spread varies d by up to ±fraction.
func spread(d time.Duration, fraction, random float64) time.Duration {
	return time.Duration(float64(d) * (1 + fraction*(2*random-1)))
}

// Package backoff computes delays between attempts. It has no clock and no random source of
// its own.
package backoff

import (
	"math"
	"time"
)

// Exponential returns initial · 2^n, at most limit.
func Exponential(initial time.Duration, n int, limit time.Duration) time.Duration {
	d := float64(initial) * math.Pow(2, float64(min(n, 62)))
	return time.Duration(min(d, float64(limit)))
}

// Jitter varies d by up to ±fraction. random is in [0, 1).
func Jitter(d time.Duration, fraction, random float64) time.Duration {
	return time.Duration(float64(d) * (1 + fraction*(2*random-1)))
}

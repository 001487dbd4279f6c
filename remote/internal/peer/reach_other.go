//go:build !linux

package peer

import "time"

// boundUnacknowledged leaves it to the kernel how long what was sent may stay
// without acknowledgement.
func boundUnacknowledged(uintptr, time.Duration) {}

//go:build !linux

package peer

import "time"

// boundUnacknowledged does nothing: the kernel's retransmission limit applies.
func boundUnacknowledged(uintptr, time.Duration) {}

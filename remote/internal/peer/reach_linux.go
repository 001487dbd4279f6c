package peer

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const tcpUserTimeout = 0x12

// boundUnacknowledged ends a connection on which what was sent is not
// acknowledged for d. Where the kernel has no such bound, the one of its
// retransmissions holds.
func boundUnacknowledged(fd uintptr, d time.Duration) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds())) //nolint:gosec // a file descriptor
}

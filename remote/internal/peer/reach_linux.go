package peer

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not define.
const tcpUserTimeout = 0x12

// boundUnacknowledged makes the kernel close a connection whose sent bytes are not
// acknowledged for d. Errors are ignored: without the option the kernel's
// retransmission limit applies.
func boundUnacknowledged(fd uintptr, d time.Duration) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds())) //nolint:gosec // a file descriptor
}

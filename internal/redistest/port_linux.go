package redistest

import (
	"fmt"
	"net"
	"sync"
)

// reserved has abstract unix sockets whose names tell other test processes which ports
// are taken. The kernel removes them with the process.
var reserved struct {
	mu    sync.Mutex
	names []net.Listener
}

// reserve reserves a port among all processes that call reserve. It fails if the port
// is reserved already.
func reserve(port int) error {
	l, err := net.Listen("unix", fmt.Sprintf("@wakebell-redistest-%d", port))
	if err != nil {
		return fmt.Errorf("reserve port %d: %w", port, err)
	}
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	reserved.names = append(reserved.names, l)
	return nil
}

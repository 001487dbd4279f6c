package redistest

import (
	"fmt"
	"net"
	"sync"
)

// reserved are the names that say to other processes which ports are taken. The
// kernel forgets them with the process.
var reserved struct {
	mu    sync.Mutex
	names []net.Listener
}

// reserve keeps a port from all who ask for it by reserve; an error: another has
// it.
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

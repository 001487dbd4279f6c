package remote

import (
	"sync"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/messages"
)

// arrivals are leases on their way from a topic's handlers to its hub, which is
// told once for all that gather until it looks. They outlive a crash of the hub.
type arrivals struct {
	mu     sync.Mutex
	tell   func()
	leases []*actors.Handed
	ended  []*messages.LeaseEnded
}

// arrived is what a hub is told.
type arrived struct{}

// begin has a hub told from now on.
func (a *arrivals) begin(tell func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell, a.leases, a.ended = tell, nil, nil // those before ended with the hub before
}

// Take implements actors.Taker.
func (a *arrivals) Take(h *actors.Handed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leases = append(a.leases, h)
	a.first()
}

// Over implements actors.Taker.
func (a *arrivals) Over(m *messages.LeaseEnded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, m)
	a.first()
}

func (a *arrivals) first() {
	if len(a.leases)+len(a.ended) == 1 {
		a.tell()
	}
}

func (a *arrivals) take() ([]*actors.Handed, []*messages.LeaseEnded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	leases, ended := a.leases, a.ended
	a.leases, a.ended = nil, nil
	return leases, ended
}

package subscriptions

import (
	"sync"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// arrivals are leases on their way from a topic's handlers to its hub, which is
// reported once for all that gather until it looks. They outlive a crash of the hub.
type arrivals struct {
	mu      sync.Mutex
	notify  func()
	pending pending
}

// pending are what gathers.
type pending struct {
	leases, extended []*poller.ForwardedLease
	ended            []*messages.LeaseEnded
}

// arrived is what a hub is reported.
type arrived struct{}

// begin has a hub reported from now on.
func (a *arrivals) begin(notify func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notify, a.pending = notify, pending{} // those before ended with the hub before
}

// Take implements actors.Taker.
func (a *arrivals) Take(h *poller.ForwardedLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending.leases = append(a.pending.leases, h)
	a.first()
}

// Extended implements actors.Taker.
func (a *arrivals) Extended(h *poller.ForwardedLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending.extended = append(a.pending.extended, h)
	a.first()
}

// Over implements actors.Taker.
func (a *arrivals) Over(m *messages.LeaseEnded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending.ended = append(a.pending.ended, m)
	a.first()
}

func (a *arrivals) first() {
	if len(a.pending.leases)+len(a.pending.extended)+len(a.pending.ended) == 1 {
		a.notify()
	}
}

func (a *arrivals) collect() pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.pending
	a.pending = pending{}
	return taken
}

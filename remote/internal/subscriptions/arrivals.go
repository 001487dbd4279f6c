package subscriptions

import (
	"sync"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// arrivals collects leases on their way from a topic's handlers to its hub. It
// notifies the hub once per batch. It survives a crash of the hub.
type arrivals struct {
	mu      sync.Mutex
	notify  func()
	pending pending
}

// pending is the batch that has not been collected.
type pending struct {
	leases, extended []*poller.ForwardedLease
	ended            []*messages.LeaseEnded
}

// arrived notifies a hub of a batch.
type arrived struct{}

// begin starts an empty batch and sets how the hub is notified.
func (a *arrivals) begin(notify func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notify, a.pending = notify, pending{} // earlier leases ended with the previous hub
}

// Take implements poller.LeaseSink.
func (a *arrivals) Take(h *poller.ForwardedLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending.leases = append(a.pending.leases, h)
	a.first()
}

// Extended implements poller.LeaseSink.
func (a *arrivals) Extended(h *poller.ForwardedLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending.extended = append(a.pending.extended, h)
	a.first()
}

// Over implements poller.LeaseSink.
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

package remote

import (
	"sync"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// arrivals are leases on their way from a topic's handlers to its hub, which is
// told once for all that gather until it looks. They outlive a crash of the hub.
type arrivals struct {
	mu   sync.Mutex
	tell func()
	news news
}

// news are what gathers.
type news struct {
	leases, extended []*poller.ForwardedLease
	ended            []*messages.LeaseEnded
}

// arrived is what a hub is told.
type arrived struct{}

// begin has a hub told from now on.
func (a *arrivals) begin(tell func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell, a.news = tell, news{} // those before ended with the hub before
}

// Take implements actors.Taker.
func (a *arrivals) Take(h *poller.ForwardedLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.news.leases = append(a.news.leases, h)
	a.first()
}

// Extended implements actors.Taker.
func (a *arrivals) Extended(h *poller.ForwardedLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.news.extended = append(a.news.extended, h)
	a.first()
}

// Over implements actors.Taker.
func (a *arrivals) Over(m *messages.LeaseEnded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.news.ended = append(a.news.ended, m)
	a.first()
}

func (a *arrivals) first() {
	if len(a.news.leases)+len(a.news.extended)+len(a.news.ended) == 1 {
		a.tell()
	}
}

func (a *arrivals) take() news {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.news
	a.news = news{}
	return taken
}

package webhook

import (
	"context"
	"sync"
)

// Hosts bounds how many requests run at once to each host, of all Webhooks that share it.
// A handler that waits for its place keeps its timer, whose lease is extended.
type Hosts struct {
	// Max is the bound: 1 – 10,000. It must not change after the first use.
	Max int

	mu     sync.Mutex
	places map[string]chan struct{} // one for each host of a configuration
}

// enter waits for a place at a host, which the returned function gives back. A nil Hosts
// has places without end.
func (h *Hosts) enter(ctx context.Context, host string) (leave func(), err error) {
	if h == nil {
		return func() {}, nil
	}
	places := h.of(host)
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *Hosts) of(host string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places == nil {
		h.places = map[string]chan struct{}{}
	}
	places := h.places[host]
	if places == nil {
		places = make(chan struct{}, h.Max)
		h.places[host] = places
	}
	return places
}

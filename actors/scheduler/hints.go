package scheduler

import (
	"context"
	"sync"
)

// Hints passes the hints of one subscription on to the schedulers of all parts.
type Hints struct {
	listen func(ctx context.Context, deliver func(part int)) error

	mu        sync.Mutex
	listeners map[int]*listener // by part
}

type listener struct{ deliver func() }

// NewHints returns hints without listeners. Listen calls deliver with the part, from 0, of
// a schedule that was changed, until its ctx ends or listening is refused.
func NewHints(listen func(ctx context.Context, deliver func(part int)) error) *Hints {
	return &Hints{listen: listen, listeners: map[int]*listener{}}
}

// Of returns Config.Listen for the scheduler of a part. That of part 0 keeps the
// subscription; without it, the others find changes by polling.
func (h *Hints) Of(part int) func(ctx context.Context, deliver func()) error {
	return func(ctx context.Context, deliver func()) error {
		l := &listener{deliver}
		h.join(part, l)
		defer h.leave(part, l)
		if part == 0 {
			return h.listen(ctx, h.pass)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

func (h *Hints) join(part int, l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[part] = l
}

// leave removes a listener, unless that of a later incarnation has taken its place.
func (h *Hints) leave(part int, l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[part] == l {
		delete(h.listeners, part)
	}
}

func (h *Hints) pass(part int) {
	h.mu.Lock()
	l := h.listeners[part]
	h.mu.Unlock()
	if l != nil {
		l.deliver()
	}
}

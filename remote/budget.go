package remote

import "sync"

// byteBounds are the limits of a budget, in bytes or in number.
type byteBounds struct{ holder, principal, host, total, share int }

// budget counts the bytes, or the number of something, that the node holds for
// peers.
type budget struct {
	bounds byteBounds

	mu         sync.Mutex
	total      int
	principals map[string]int // without those that hold nothing
	hosts      map[string]int
	change     chan struct{} // closed when bytes are given back; nil: nothing waits for it
}

func newBudget(b byteBounds) *budget {
	return &budget{bounds: b, principals: map[string]int{}, hosts: map[string]int{}}
}

// holder is one stream or subscription that bytes are held for. A nil holder has
// no bounds.
type holder struct {
	of              *budget
	principal, host string
	used            int // guarded by of.mu
}

func (b *budget) holder(principal, host string) *holder {
	return &holder{of: b, principal: principal, host: host}
}

// take takes n bytes if there is room for them.
func (h *holder) take(n int) bool {
	if h == nil {
		return true
	}
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.tryTake(n)
}

// takeOrWait is take; without room it returns a channel that is closed when
// there may be.
func (h *holder) takeOrWait(n int) (full <-chan struct{}) {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.tryTake(n) {
		return nil
	}
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return b.change
}

func (h *holder) tryTake(n int) bool {
	room, spare := h.room()
	if h.used == 0 {
		room = spare
	}
	if room < n && h.of.principals[h.principal] > 0 {
		return false
	}
	h.add(n)
	return true
}

// room is how many bytes the holder may still take, and spare how many if it has
// nothing: one item is not refused for what other holders of the principal have.
// The lock is held.
func (h *holder) room() (room, spare int) {
	b := h.of
	mine := b.principals[h.principal]
	share := max(b.bounds.share-mine, 0)
	spare = max(min(b.bounds.host-b.hosts[h.host], b.bounds.total-b.total), share)
	return max(min(spare, b.bounds.holder-h.used, b.bounds.principal-mine), share), spare
}

// left is room, for the holder's planning.
func (h *holder) left() (room, spare int) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.room()
}

// inUse is how many bytes the holder has.
func (h *holder) inUse() int {
	if h == nil {
		return 0
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.used
}

// force takes n bytes whatever the bounds are.
func (h *holder) force(n int) {
	if h == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(n)
}

// give gives n bytes back, or what the holder has.
func (h *holder) give(n int) {
	if h == nil {
		return
	}
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, h.used)
	if n <= 0 {
		return
	}
	h.add(-n)
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// moveTo has another holder hold what this one does; the bounds of that one count
// from the next bytes on.
func (h *holder) moveTo(other *holder) *holder {
	other.force(h.inUse())
	h.clear()
	return other
}

// clear gives back all that the holder has.
func (h *holder) clear() { h.give(maxTaken) }

const maxTaken = int(^uint(0) >> 1)

func (h *holder) add(n int) {
	b := h.of
	h.used += n
	b.total += n
	addTo(b.principals, h.principal, n)
	addTo(b.hosts, h.host, n)
}

func addTo(counts map[string]int, key string, n int) {
	if n += counts[key]; n > 0 {
		counts[key] = n
		return
	}
	delete(counts, key)
}

// Package limits bounds what peers make a node hold: each resource per principal,
// per host and in total.
package limits

import (
	"math"
	"sync"
	"time"
)

// Party is what a resource is charged to. One without a principal has the bounds
// of its host alone.
type Party struct{ Principal, Host string }

// owner tells apart those that have a share: principals, and the hosts of peers
// without one.
func (p Party) owner() Party {
	if p.Principal != "" {
		p.Host = ""
	}
	return p
}

// Budget counts what is held of one resource.
type Budget struct {
	bound Bound

	mu      sync.Mutex
	total   int
	owners  map[Party]int // without those that hold nothing
	hosts   map[string]int
	changed chan struct{} // closed when something is given back; nil: nothing waits for it
}

// NewBudget returns a budget of which nothing is held.
func NewBudget(b Bound) *Budget {
	return &Budget{bound: b, owners: map[Party]int{}, hosts: map[string]int{}}
}

// fullError says which bound was reached.
type fullError struct{ name, whose string }

func (e fullError) Error() string { return "too many " + e.name + e.whose }

// Take takes n for a party. The error says which bound is reached.
func (b *Budget) Take(of Party, n int) error { return b.Holder(of).Take(n) }

// Give gives back what Take took.
func (b *Budget) Give(of Party, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(of, -n)
}

// Await is Take that waits for room: until end is closed, or limit is over.
func (b *Budget) Await(of Party, n int, limit time.Duration, end <-chan struct{}) error {
	h := b.Holder(of)
	changed, err := h.takeOrWait(n)
	if err == nil {
		return nil
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	for err != nil {
		select {
		case <-changed:
			changed, err = h.takeOrWait(n)
		case <-late.C:
			return err
		case <-end:
			return err
		}
	}
	return nil
}

// room is how much a holder that has used so much may still take, and spare how
// much if it has nothing: with a share, one item is not refused for what other
// holders of the principal have.
func (b *Budget) room(of Party, used int) (room, spare int) {
	mine := b.owners[of.owner()]
	share := max(b.bound.Share-mine, 0)
	spare = max(min(left(b.bound.Host, b.hosts[of.Host]), left(b.bound.Total, b.total)), share)
	room = min(spare, left(b.bound.Holder, used))
	if of.Principal != "" {
		room = min(room, left(b.bound.Principal, mine))
	}
	return max(room, share), spare
}

// left is what a bound leaves; 0 bounds nothing.
func left(bound, used int) int {
	if bound == 0 {
		return math.MaxInt
	}
	return bound - used
}

// full says which bound leaves no n to a holder.
func (b *Budget) full(of Party, n int) error {
	switch {
	case of.Principal != "" && left(b.bound.Principal, b.owners[of.owner()]) < n:
		return fullError{b.bound.Name, " of this principal"}
	case left(b.bound.Host, b.hosts[of.Host]) < n:
		return fullError{b.bound.Name, " of this host"}
	case left(b.bound.Total, b.total) < n:
		return fullError{b.bound.Name, ""}
	}
	return fullError{b.bound.Name, " of this stream or subscription"}
}

// add counts what a party holds from now on. What is given back lets go on what
// waits for it.
func (b *Budget) add(of Party, n int) {
	b.total += n
	addTo(b.owners, of.owner(), n)
	addTo(b.hosts, of.Host, n)
	if n < 0 && b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

func addTo[K comparable](counts map[K]int, key K, n int) {
	if n += counts[key]; n > 0 {
		counts[key] = n
		return
	}
	delete(counts, key)
}

// Package limits bounds what peers make a node hold: each resource per principal,
// per host and in total.
package limits

import (
	"math"
	"sync"
	"time"
)

// Party is charged for a resource. A Party without a principal has only the bounds
// of its host.
type Party struct{ Principal, Host string }

// owner returns the key of the share: the principal, or the host of a peer without
// one.
func (p Party) owner() Party {
	if p.Principal != "" {
		p.Host = ""
	}
	return p
}

// Budget counts how much of one resource is in use.
type Budget struct {
	bound Bound

	// Full is called with the name of the bound that was reached, with the lock; nil:
	// it is not called. Set it before use.
	Full func(name string)

	mu      sync.Mutex
	total   int
	owners  map[Party]int // only parties with a usage above 0
	hosts   map[string]int
	changed chan struct{} // closed when something is given back; nil: no waiters
}

// NewBudget returns an unused budget.
func NewBudget(b Bound) *Budget {
	return &Budget{bound: b, owners: map[Party]int{}, hosts: map[string]int{}}
}

// fullError names the bound that was reached.
type fullError struct{ name, whose string }

func (e fullError) Error() string { return "too many " + e.name + e.whose }

// Take charges n to a party. The error names the bound that is reached.
func (b *Budget) Take(of Party, n int) error { return b.Holder(of).Take(n) }

// Give returns what Take charged.
func (b *Budget) Give(of Party, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(of, -n)
}

// Await is Take, but waits for room for at most limit, or until end is closed.
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

// room returns how much a holder with this usage may still take, and in spare how
// much it could take if it held nothing: with a share, one item is not refused
// because of other holders of the principal.
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

// left returns what a bound leaves. A bound of 0 is unlimited.
func left(bound, used int) int {
	if bound == 0 {
		return math.MaxInt
	}
	return bound - used
}

// full returns the error for the bound that leaves no room for n.
func (b *Budget) full(of Party, n int) error {
	if b.Full != nil {
		b.Full(b.bound.Name)
	}
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

// add changes the usage of a party by n. It wakes the waiters if n is negative.
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

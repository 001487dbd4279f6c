package remote

import "sync"

// bound is how much of a resource peers can make the node hold: one principal,
// one host, and all of them together. 0: there is no bound of its own; the one
// beside it holds.
type bound struct {
	name                   string
	principal, host, total int64
}

// shares count what principals and hosts hold of a resource.
type shares struct {
	bound

	mu      sync.Mutex
	used    map[shareKey]int64 // what is zero is not in it
	all     int64
	changed chan struct{} // closed when something was given back
}

// shareKey is a principal or a host.
type shareKey struct {
	host bool
	name string
}

func newShares(b bound) *shares {
	return &shares{bound: b, used: map[shareKey]int64{}, changed: make(chan struct{})}
}

// full says whose share is used up.
type fullError string

func (e fullError) Error() string { return string(e) }

// take takes n for a principal at a host. A principal without a name is held by
// its host's share alone. The error is a fullError.
func (s *shares) take(principal, host string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, where := shareKey{false, principal}, shareKey{true, host}
	switch {
	case principal != "" && s.principal > 0 && s.used[who]+n > s.principal:
		return fullError("too many " + s.name + " of this principal")
	case s.host > 0 && s.used[where]+n > s.host:
		return fullError("too many " + s.name + " of this host")
	case s.all+n > s.total:
		return fullError("too many " + s.name)
	}
	s.all += n
	s.used[where] += n
	if principal != "" {
		s.used[who] += n
	}
	return nil
}

// give gives back what take took.
func (s *shares) give(principal, host string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	s.less(shareKey{true, host}, n)
	if principal != "" {
		s.less(shareKey{false, principal}, n)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *shares) less(key shareKey, n int64) {
	if s.used[key] -= n; s.used[key] == 0 {
		delete(s.used, key)
	}
}

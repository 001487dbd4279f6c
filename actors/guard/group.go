package guard

import (
	"slices"
	"sync"
)

// Group shares a bound of concurrency among topics by their weights. While several
// topics have timers for it, they take places in the proportion of their weights; a
// topic alone takes all of them. It is a start-time fair queue: each topic has a virtual
// instant at which it takes its next place, which advances by 1 / weight with each
// place, and the one with the earliest is next. A topic that was idle begins at the
// present, so it saves nothing. Any goroutine may call the methods.
type Group struct {
	mu      sync.Mutex
	members []*Member
	now     float64 // virtual instant of the last place taken
}

// Member is a topic of a group. Its poller owns it.
type Member struct {
	group  *Group
	weight float64
	wake   func() // tells the poller to take its turn

	bound   int // handlers of the topic
	used    int
	start   float64 // while it waits
	finish  float64
	waiting bool
	woken   bool // since it waits
}

// Member returns a topic of the group. Its poller begins with Enter.
func (g *Group) Member(weight float64) *Member { return &Member{group: g, weight: weight} }

// Enter adds the topic, which has used places already, and sets what tells its poller that
// it is its turn. wake must not block or call the group.
func (m *Member) Enter(used int, wake func()) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.used, m.wake = used, wake
	m.group.members = append(m.group.members, m)
}

// SetWeight changes the weight of the topic.
func (m *Member) SetWeight(weight float64) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.weight = weight
}

// In reports whether the topic is one of the group.
func (m *Member) In(g *Group) bool { return m != nil && m.group == g }

// Leave gives all places back: the poller has ended.
func (m *Member) Leave() {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.used, m.bound, m.waiting, m.wake = 0, 0, false, nil
	m.group.members = slices.DeleteFunc(m.group.members, func(other *Member) bool { return other == m })
	m.group.wakeNext()
}

// SetBound sets how many handlers the topic may run. The largest of the group is the
// bound of the group.
func (m *Member) SetBound(n int) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.bound = n
	m.group.wakeNext()
}

// Take takes up to n places. 0: it is not the turn of the topic, which waits, and is
// woken when it is.
func (m *Member) Take(n int) int {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.waiting {
		m.wait()
	}
	m.woken = false
	next := g.next(m)
	before := next != nil && (next.start < m.start || next.start == m.start && !m.waiting)
	free := g.free()
	if free <= 0 || before {
		m.waiting = true
		g.wakeNext()
		return 0
	}
	n = min(n, free)
	if next != nil {
		n = min(n, int((next.start-m.start)*m.weight)+1)
	}
	m.waiting, g.now, m.finish = false, m.start, m.start+float64(n)/m.weight
	m.used += n
	g.wakeNext()
	return n
}

// Return gives back all places but used, whose handlers run.
func (m *Member) Return(used int) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if used < m.used {
		m.used = used
		m.group.wakeNext()
	}
}

// Refund takes back what n places cost, for which there was no timer.
func (m *Member) Refund(n int) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.finish -= float64(n) / m.weight
}

// Compete sets whether the topic has a use for more places than it has. While it has,
// topics whose turn comes later leave them to it, also while it cannot take one at once,
// because its last claim is not answered yet.
func (m *Member) Compete(on bool) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if on && !m.waiting {
		m.wait()
	}
	m.waiting = on
	m.group.wakeNext()
}

// wait sets the virtual instant of the next place. mu is held.
func (m *Member) wait() { m.start, m.woken = max(m.group.now, m.finish), false }

// free returns how many places are free. mu is held, as in the next ones.
func (g *Group) free() int {
	bound, used := 0, 0
	for _, m := range g.members {
		bound, used = max(bound, m.bound), used+m.used
	}
	return bound - used
}

// next returns the first of those that wait, except for one.
func (g *Group) next(except *Member) (first *Member) {
	for _, m := range g.members {
		if m != except && m.waiting && (first == nil || m.start < first.start) {
			first = m
		}
	}
	return first
}

// wakeNext tells the first of those that wait that a place is free.
func (g *Group) wakeNext() {
	m := g.next(nil)
	if m != nil && !m.woken && g.free() > 0 {
		m.woken = true
		m.wake()
	}
}

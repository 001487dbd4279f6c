package remote

import (
	"sync"
	"time"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
)

// bound is how much of a resource peers can make the node hold: one principal,
// one host, and all of them together. 0: there is no bound of its own; the one
// beside it holds.
type bound struct {
	name                   string
	principal, host, total int64
}

// The bounds that no other file needs. docs/remote.md has one table of all of
// bounds; a test compares them.
const (
	// Shares of Config.MaxConnections, in quarters.
	principalQuarters, hostQuarters = 2, 3
	waitingQuarters                 = 2

	// Messages that have begun to arrive and are not carried out yet, in times of
	// Config.MaxMessage.
	principalMessages, hostMessages, totalMessages = 2, 6, 16

	principalStreams, hostStreams, totalStreams = 512, 1024, 4096

	// Links to peers that are tried at once, and tries a minute that failed.
	principalDialing, hostDialing, totalDialing = 16, 32, 128
	principalFailed, hostFailed, totalFailed    = 120, 240, 1200

	// Lines of the log about peers: of one kind of one principal or host a minute,
	// and of all a minute.
	peerLines, totalLines = 1, 60
)

// bounds are those of a Config with the defaults, and the table in docs/remote.md.
var bounds = []bound{
	{"connections", quarters(DefaultMaxConnections, principalQuarters), quarters(DefaultMaxConnections, hostQuarters), DefaultMaxConnections},
	{"connections without an authenticated call", 0, 0, quarters(DefaultMaxConnections, waitingQuarters)},
	{"streams, which are calls and sessions", principalStreams, hostStreams, totalStreams},
	{"bytes of messages over 64 KiB, from their first byte until they are carried out", principalMessages * DefaultMaxMessage, hostMessages * DefaultMaxMessage, totalMessages * DefaultMaxMessage},
	{"bytes of each stream that are not read yet", streamWindow, 0, 0},
	{"links to peers being dialled", principalDialing, hostDialing, totalDialing},
	{"failed dials a minute", principalFailed, hostFailed, totalFailed},
	{"log lines a minute", peerLines, peerLines, totalLines},
	boundSubscriptions,
	boundIdleTopics,
	boundOperations,
	boundLongOperations,
	{"requests that wait at the gateway, and as many at the reminders", gateway.MaxWaiting / 2, gateway.MaxHostWaiting, gateway.MaxWaiting},
	{"bytes of requests at the gateway, and as many at the reminders", gateway.MaxWaitingBytes / 2, gateway.MaxHostWaitingBytes, gateway.MaxWaitingBytes},
	{"bytes of answers that were asked for and not sent", maxPrincipalAnswerBytes, maxHostAnswerBytes, maxTotalAnswerBytes},
	{"bytes of leases in the hands of subscribers", maxPrincipalLeaseBytes, maxHostLeaseBytes, maxTotalLeaseBytes},
	{"bytes of leases that wait for a subscriber", 0, 0, maxWaitingBytes},
	{"bytes of messages that wait for the links to peers", maxPrincipalMailBytes, maxHostMailBytes, maxTotalMailBytes},
	{"actors of the node that peers watch", maxPrincipalWatches, maxHostWatches, maxTotalWatches},
	{"turns at gates, and places in their queues", gates.MaxPrincipalVisits, gates.MaxHostVisits, gates.MaxVisits},
}

func quarters(limit, n int64) int64 { return (limit*n + 3) / 4 }

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

// fullError says whose share is used up.
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

// await is take that waits for room: until end is closed, or limit is over.
func (s *shares) await(principal, host string, n int64, limit time.Duration, end <-chan struct{}) error {
	var late <-chan time.Time
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		err := s.take(principal, host, n)
		if err == nil {
			return nil
		}
		if late == nil {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-changed:
		case <-late:
			return err
		case <-end:
			return err
		}
	}
}

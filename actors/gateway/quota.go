package gateway

import (
	"fmt"

	"github.com/wakebell/wakebell/actors/internal/principal"
)

// quota counts the waiting requests, the running requests and the bytes of both,
// for each principal, for each host and in total. A principal, like this process,
// may hold at most half of the waiting requests and bytes that the others leave,
// and the principals of one host at most three quarters of the total. Each may
// always have one small request.
//
// Of the running requests, a principal has at most three quarters of what the
// others leave: a principal that is alone is hardly slowed, and slow requests of
// one principal leave room for the next. Each may always run one.
type quota struct {
	total      usage
	principals map[principal.Party]usage // without those that hold nothing
	hosts      map[string]usage
}

// usage is a part of the quota.
type usage struct{ waiting, running, bytes int }

func (u usage) plus(o usage) usage {
	return usage{u.waiting + o.waiting, u.running + o.running, u.bytes + o.bytes}
}

// MaxPrincipalRunning bounds the running requests of a principal that is alone.
const MaxPrincipalRunning = MaxRunning * 3 / 4

// MaxHostWaiting, MaxHostWaitingBytes and MaxHostRunning bound what the
// principals of one host hold together.
const (
	MaxHostWaiting      = MaxWaiting * 3 / 4
	MaxHostWaitingBytes = MaxWaitingBytes * 3 / 4
	MaxHostRunning      = MaxRunning * 7 / 8
)

// smallBytes is the size of a request that a principal without others has room for.
const smallBytes = 64 << 10

func newQuota() quota {
	return quota{principals: map[principal.Party]usage{}, hosts: map[string]usage{}}
}

// exceeded reports why a request is refused; empty: it is not.
func (r *quota) exceeded(of principal.Party, size int) string {
	mine, host := r.principals[of.Holder()], r.hosts[of.Host]
	switch {
	case mine == (usage{}) && size <= smallBytes:
		return ""
	case mine.waiting >= (MaxWaiting-(r.total.waiting-mine.waiting))/2:
		return fmt.Sprintf("%d requests of this principal are waiting, %d in total", mine.waiting, r.total.waiting)
	case mine.bytes+size > (MaxWaitingBytes-(r.total.bytes-mine.bytes))/2:
		return fmt.Sprintf("requests of %d bytes of this principal are waiting, %d in total", mine.bytes, r.total.bytes)
	case of.Host != "" && host.waiting >= MaxHostWaiting:
		return fmt.Sprintf("%d requests of this host are waiting", host.waiting)
	case of.Host != "" && host.bytes+size > MaxHostWaitingBytes:
		return fmt.Sprintf("requests of %d bytes of this host are waiting", host.bytes)
	}
	return ""
}

// mayRun reports whether one more request of a party may run.
func (r *quota) mayRun(of principal.Party) bool {
	mine := r.principals[of.Holder()].running
	switch {
	case mine == 0:
		return true
	case of.Host != "" && r.hosts[of.Host].running >= MaxHostRunning:
		return false
	}
	return mine < (MaxRunning-(r.total.running-mine))*3/4
}

// add adds to what a party holds; negative numbers are returned.
func (r *quota) add(of principal.Party, more usage) {
	r.total = r.total.plus(more)
	addTo(r.principals, of.Holder(), more)
	if of.Host != "" {
		addTo(r.hosts, of.Host, more)
	}
}

func addTo[K comparable](counts map[K]usage, key K, more usage) {
	if now := counts[key].plus(more); now != (usage{}) {
		counts[key] = now
		return
	}
	delete(counts, key)
}

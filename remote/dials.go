package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// dials bound what peers can have the node dial: links that are tried at once,
// and tries that failed within a minute, of a principal, of a host and in total.
// A peer that listens at its address costs none of the latter.
type dials struct {
	trying *limits.Budget
	failed *limits.Budget

	mu     sync.Mutex
	minute time.Time // when what has failed is forgotten
}

func newDials() dials {
	return dials{
		trying: limits.NewBudget(limits.Dialing),
		failed: limits.NewBudget(limits.FailedDials),
	}
}

var errTooManyDials = errors.New("too many addresses of this peer were dialled in vain")

// begin takes a place for a dial, and what ends it: with whether it worked.
func (d *dials) begin(owner, host string) (end func(worked bool), err error) {
	of, failed := limits.Party{Principal: owner, Host: host}, d.failures()
	if err := failed.Take(of, 1); err != nil {
		return nil, fmt.Errorf("%w: %w", errTooManyDials, err)
	}
	if err := d.trying.Take(of, 1); err != nil {
		failed.Give(of, 1)
		return nil, fmt.Errorf("%w: %w", errTooManyDials, err)
	}
	var once sync.Once
	return func(worked bool) {
		once.Do(func() {
			d.trying.Give(of, 1)
			if worked {
				failed.Give(of, 1)
			}
		})
	}, nil
}

// failures are those of this minute.
func (d *dials) failures() *limits.Budget {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); !now.Before(d.minute) {
		d.minute, d.failed = now.Add(time.Minute), limits.NewBudget(limits.FailedDials)
	}
	return d.failed
}

// where is where a peer is dialled that says to be at host: the address that was
// checked, and never a name, which could be another address by then. An address
// has to be the one that the peer connects from. A name has to stand for that, or
// be in the peer's certificate; then it may be another address, but none of the
// node's own machine or link.
func (w who) where(ctx context.Context, host string, port int) (string, error) {
	from := net.ParseIP(w.host)
	if ip := net.ParseIP(host); ip != nil {
		if from != nil && from.Equal(ip) {
			return net.JoinHostPort(w.host, strconv.Itoa(port)), nil
		}
		if w.names(host) && foreign(ip, from) {
			return net.JoinHostPort(ip.String(), strconv.Itoa(port)), nil
		}
		return "", errElsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := lookupHost(ctx, host)
	if err != nil {
		return "", errElsewhere
	}
	if slices.ContainsFunc(found, func(a string) bool { ip := net.ParseIP(a); return ip != nil && ip.Equal(from) }) {
		return net.JoinHostPort(w.host, strconv.Itoa(port)), nil
	}
	if w.names(host) {
		for _, a := range found {
			if ip := net.ParseIP(a); ip != nil && foreign(ip, from) {
				return net.JoinHostPort(a, strconv.Itoa(port)), nil
			}
		}
	}
	return "", errElsewhere
}

var errElsewhere = errors.New("it is not where it connects from")

// lookupHost is the resolver; a test has another.
var lookupHost = net.DefaultResolver.LookupHost

// foreign reports whether an address that a peer names beside its own may be
// dialled.
func foreign(ip, from net.IP) bool {
	switch {
	case from != nil && from.IsLoopback():
		return ip.IsLoopback()
	default:
		return ip.IsGlobalUnicast() // which loopback, link-local and multicast addresses are not
	}
}

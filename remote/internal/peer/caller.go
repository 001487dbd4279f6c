package peer

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// where is where a peer is dialled that says to be at host: the address that was
// checked, and never a name, which could be another address by then. An address
// has to be the one that the peer connects from. A name has to stand for that, or
// be in the peer's certificate; then it may be another address, but none of the
// node's own machine or link.
func (w Caller) dialAddress(ctx context.Context, host string, port int) (string, error) {
	from := net.ParseIP(w.host)
	if ip := net.ParseIP(host); ip != nil {
		if from != nil && from.Equal(ip) {
			return net.JoinHostPort(w.host, strconv.Itoa(port)), nil
		}
		if w.names(host) && foreign(ip, from) {
			return net.JoinHostPort(ip.String(), strconv.Itoa(port)), nil
		}
		return "", errForeignAddress
	}
	ctx, cancel := context.WithTimeout(ctx, wire.DialTimeout)
	defer cancel()
	found, err := lookupHost(ctx, host)
	if err != nil {
		return "", errForeignAddress
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
	return "", errForeignAddress
}

var errForeignAddress = errors.New("it is not where it connects from")

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

// Caller is a caller that has shown who it is.
type Caller struct {
	Owner  string // empty: no credentials are asked for
	token  string
	celery string // queues that are open to peers, as the header has them
	host   string // where it connects from
	names  func(host string) bool
}

// Party is what is charged to the caller.
func (w Caller) Party() limits.Party { return limits.Party{Principal: w.Owner, Host: w.host} }

type callerKey struct{}

// CallerOf is who makes a call that begin has let in.
func CallerOf(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}

// Header says which principal sends a message, from which host, and to which
// Celery queues it may have tasks sent.
func (w Caller) Header() map[string]string {
	return map[string]string{messages.PrincipalHeader: w.Owner, messages.HostHeader: w.host, messages.CeleryHeader: w.celery}
}

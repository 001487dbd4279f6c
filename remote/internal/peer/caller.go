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

// dialAddress returns the address to dial for a peer that claims to be at host. It
// returns the address that was checked, never a name, which could resolve to another
// address later. A claimed address must be the one that the peer connects from. A
// claimed name must resolve to that address or be in the peer's certificate; in the
// latter case it may be another address, but not one of the node's own machine or
// link.
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

// lookupHost resolves names. Tests replace it.
var lookupHost = net.DefaultResolver.LookupHost

// foreign reports whether an address that a peer names in addition to its own may be
// dialled.
func foreign(ip, from net.IP) bool {
	switch {
	case from != nil && from.IsLoopback():
		return ip.IsLoopback()
	default:
		return ip.IsGlobalUnicast() // which loopback, link-local and multicast addresses are not
	}
}

// Caller is an authenticated caller.
type Caller struct {
	Owner      string // empty: no credentials are required
	credential string // where the owner is from: wakebelltype.AuditViaToken, AuditViaCertificate; empty: no owner
	token      string
	celery     string // queues that are open to peers, as in the header
	host       string // the host that it connects from
	names      func(host string) bool
}

// Party returns the party that is charged for the caller.
func (w Caller) Party() limits.Party { return limits.Party{Principal: w.Owner, Host: w.host} }

type callerKey struct{}

// CallerOf returns the authenticated caller of a call.
func CallerOf(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}

// Header returns the header of a message: its principal with the kind of its
// credentials, its host, and the Celery queues that are open to it.
func (w Caller) Header() map[string]string {
	return map[string]string{messages.PrincipalHeader: w.Owner, messages.HostHeader: w.host, messages.CeleryHeader: w.celery, messages.CredentialHeader: w.credential}
}

// Origin returns where the caller's requests come from.
func (w Caller) Origin() messages.Origin {
	return messages.Origin{Host: w.host, Credential: w.credential}
}

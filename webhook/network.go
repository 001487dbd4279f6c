package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/wakebell/wakebell/internal/argument"
)

// ErrAddress means that a connection was not opened, because the URL's host has an address
// that is neither public nor in Config.AllowNetworks. The timer is retried.
var ErrAddress = errors.New("address is not permitted")

// guard decides which addresses may be called. It sees them after the name of a host was
// resolved, so that what is checked is what is called.
type guard struct {
	allowed      []netip.Prefix
	loopbackOnly bool
}

func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrAddress, argument.Quote(address))
	}
	return g.check(at.Addr())
}

func (g *guard) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	within := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case g.loopbackOnly && !ip.IsLoopback():
		return fmt.Errorf("%w: %s is not loopback, and AllowHTTP is not set", ErrAddress, ip)
	case slices.ContainsFunc(g.allowed, within), isPublic(ip):
		return nil
	default:
		return fmt.Errorf("%w: %s is not public", ErrAddress, ip)
	}
}

// isPublic reports whether an address is one of the Internet: assigned for unicast, and
// reachable from everywhere. It is for addresses that are not IPv4-mapped.
func isPublic(ip netip.Addr) bool {
	within := func(p netip.Prefix) bool { return p.Contains(ip) }
	if ip.Is4() {
		return ip.IsValid() && !slices.ContainsFunc(special4, within)
	}
	if nat64.Contains(ip) { // a translator sends it to the IPv4 address in its last bytes
		b := ip.As16()
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	return global6.Contains(ip) && !slices.ContainsFunc(special6, within)
}

var (
	// special4 has the registry of special-purpose IPv4 addresses, multicast, and the
	// address at which machines in Azure reach their platform.
	special4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
		"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
	// global6 has the IPv6 addresses that are assigned for unicast; special6 those of it
	// that contain others, are for documentation, or for special purposes.
	global6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
	nat64    = netip.MustParsePrefix("64:ff9b::/96")

	loopback = prefixes("127.0.0.0/8", "::1/128")
	private  = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// ParseNetworks returns the networks of a text: loopback (127.0.0.0/8 and ::1), private
// (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7, which have metadata services of
// some clouds), an address, or a network as 10.1.0.0/16.
func ParseNetworks(s string) ([]netip.Prefix, error) {
	switch s {
	case "loopback":
		return slices.Clone(loopback), nil
	case "private":
		return slices.Clone(private), nil
	}
	if ip, err := netip.ParseAddr(s); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}, nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return nil, argument.Invalid("network", "%s, want loopback, private, an address or a network such as 10.1.0.0/16", argument.Quote(s))
	}
	return []netip.Prefix{p.Masked()}, nil
}

package peer

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// A name is resolved once, and the checked address is dialled.
func TestOnlyCheckedAddressesAreDialled(t *testing.T) { //nolint:paralleltest // it changes the resolver
	resolver := lookupHost
	t.Cleanup(func() { lookupHost = resolver })
	lookupHost = func(_ context.Context, host string) ([]string, error) {
		found := map[string][]string{
			"peer.example": {"192.0.2.7", "192.0.2.1"}, "elsewhere.example": {"192.0.2.9"},
			"loopback.example": {"127.0.0.1"}, "link.example": {"169.254.169.254"},
		}[host]
		if found == nil {
			return nil, errors.New("no such host")
		}
		return found, nil
	}
	named := func(names bool) Caller {
		return Caller{host: "192.0.2.1", names: func(string) bool { return names }}
	}
	for _, c := range []struct {
		w    Caller
		host string
		dial string // empty: it is refused
	}{
		{named(false), "192.0.2.1", "192.0.2.1:70"},
		{named(false), "192.0.2.9", ""},
		{named(false), "peer.example", "192.0.2.1:70"},
		{named(false), "elsewhere.example", ""},
		{named(false), "none.example", ""},
		{named(true), "peer.example", "192.0.2.1:70"},
		{named(true), "elsewhere.example", "192.0.2.9:70"},
		{named(true), "192.0.2.9", "192.0.2.9:70"},
		{named(true), "127.0.0.1", ""},
		{named(true), "loopback.example", ""},
		{named(true), "link.example", ""},
	} {
		dial, err := c.w.dialAddress(t.Context(), c.host, 70)
		require.Equal(t, c.dial, dial, c.host)
		require.Equal(t, c.dial == "", err != nil, c.host)
		host, _, _ := net.SplitHostPort(dial)
		require.Equal(t, c.dial != "", net.ParseIP(host) != nil, "it is an address")
	}
}

func TestDialsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDials()
	for range limits.FailedDials.Principal {
		end, err := d.begin("mallory", "h")
		require.NoError(t, err)
		end(false)
		end(true) // it is over
	}
	_, err := d.begin("mallory", "h")
	require.ErrorIs(t, err, errTooManyDials)
	for range 2 * limits.FailedDials.Principal {
		end, err := d.begin("honest", "h")
		require.NoError(t, err, "a successful dial uses up nothing")
		end(true)
	}
}

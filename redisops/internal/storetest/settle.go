package storetest

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// NoRetries makes a client report a refused connection at once.
func NoRetries(o *redis.Options) {
	o.MaxRetries, o.DialerRetries, o.ReadTimeout = -1, 1, 30*time.Second
}

var evalsha = regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`)

// ScriptMicros reads from INFO commandstats how long scripts have run, in µs.
func ScriptMicros(b *testing.B, info string) float64 {
	b.Helper()
	m := evalsha.FindStringSubmatch(info)
	if m == nil {
		return 0
	}
	us, err := strconv.ParseFloat(m[1], 64)
	require.NoError(b, err)
	return us
}

// Held returns the reference to a lease for a request.
func Held(l exchange.Lease) exchange.Held { return exchange.Held{ID: l.ID, Token: l.Token} }

// Verdict returns the settlement of a lease.
func Verdict(v exchange.Verdict, l exchange.Lease) exchange.Settlement {
	return exchange.Settlement{Held: Held(l), Verdict: v, Charge: l.Charge}
}

// IDs returns the ids of leases.
func IDs(leases []exchange.Lease) []string {
	out := make([]string, len(leases))
	for i, l := range leases {
		out[i] = l.ID
	}
	return out
}

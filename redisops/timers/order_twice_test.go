package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// twoLeases returns two leases of a timer with the key "k": one that ended when the timer
// was scheduled again while it ran, and the present one. A node that runs both settles both,
// often in one exchange.
func (f *fixture) twoLeases(t *testing.T, flow exchange.Flow) (superseded, present exchange.Lease) {
	t.Helper()
	f.dueOf(t, "k", "a")
	superseded = f.keyRated(t, 1, flow).Leases[0]
	f.dueOf(t, "k", "a")
	<-time.After(time.Second) // else both leases have the same token
	present = f.keyRated(t, 1, flow).Leases[0]
	require.Equal(t, "a", present.ID)
	return superseded, present
}

// TestAckOfSupersededLeaseFreesNoKey checks that a timer keeps its key until its retry if
// an ack of an earlier lease is refused in the exchange that nacks the present one.
func TestAckOfSupersededLeaseFreesNoKey(t *testing.T) {
	for name, flow := range map[string]exchange.Flow{
		"one at once": {PerKey: 1}, "with tokens": {PerKey: 1, KeyRateLimit: 100, KeyRatePer: time.Second, KeyRateBurst: 100},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				superseded, present := f.twoLeases(t, flow)
				f.dueOf(t, "k", "b")
				nack := storetest.Verdict(exchange.Nack, present)
				nack.Delay = time.Second
				reply := f.keyRated(t, 10, flow, ack(superseded), nack)
				require.Len(t, reply.Refused, 1)
				require.Empty(t, reply.Leases, "a holds the key until its retry")
				<-time.After(2 * time.Second)
				l := f.keyRated(t, 10, flow).Leases
				require.Equal(t, []string{"a"}, storetest.IDs(l))
				require.Equal(t, []string{"b"}, storetest.IDs(f.keyRated(t, 10, flow, ack(l[0])).Leases))
			})
		})
	}
}

// TestExtensionOfSupersededLeaseHoldsNoPlace checks that a lease which has ended counts for
// MaxInFlight no more if an extension of an earlier lease of its timer is refused meanwhile.
func TestExtensionOfSupersededLeaseHoldsNoPlace(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{MaxInFlight: 2}
		superseded, present := f.twoLeases(t, flow)
		f.due(t, "b", "c")
		r := f.Request(10, time.Hour)
		r.Flow, r.Settle, r.Extend = flow, []exchange.Settlement{ack(present)}, []exchange.Held{ack(superseded).Held}
		reply := f.Run(t, r)
		require.Len(t, reply.Refused, 1)
		require.Equal(t, []string{"b", "c"}, storetest.IDs(reply.Leases))
	})
}

// TestReleaseOfSupersededLeaseGivesNoTokenBack checks that a refused release gives back no
// token of the topic because the present lease of its timer was settled.
func TestReleaseOfSupersededLeaseGivesNoTokenBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{RateLimit: 2, RatePer: time.Hour, RateBurst: 2}
		superseded, present := f.twoLeases(t, flow)
		f.due(t, "b")
		reply := f.keyRated(t, 10, flow, ack(present), storetest.Verdict(exchange.Release, superseded))
		require.Len(t, reply.Refused, 1)
		require.Empty(t, reply.Leases, "both tokens are taken")
	})
}

package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestTokensAreTakenInOrder checks timers of a key that wait for tokens at the same time,
// where their ids are not in their order.
func TestTokensAreTakenInOrder(t *testing.T) {
	for name, flow := range map[string]exchange.Flow{
		"two at once": {PerKey: 2}, "ten at once": {PerKey: 10}, "any at once": {}, "groups of tokens": {KeyRateLimit: 100, KeyRateBurst: 10},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				flow.KeyRatePer = time.Second
				if flow.KeyRateLimit == 0 {
					flow.KeyRateLimit, flow.KeyRateBurst = 4, 1
				}
				want := []string{"z", "y", "x", "w", "v", "u", "t", "s", "r", "q", "p", "o"}
				f.dueOf(t, "k", want...)
				var claimed []string
				for len(claimed) < len(want) {
					reply := f.keyRated(t, 1, flow)
					for _, l := range reply.Leases {
						claimed = append(claimed, l.ID)
						f.keyRated(t, 0, flow, ack(l))
					}
					if reply.Next > 0 {
						<-time.After(reply.Next)
					}
				}
				require.Equal(t, want, claimed)
			})
		})
	}
}

// TestTimerThatWaitsForTokenIsNotOvertaken checks that a token which is there before the
// instant for which a timer waits is not taken by a later one.
func TestTimerThatWaitsForTokenIsNotOvertaken(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{PerKey: 2, KeyRateLimit: 1, KeyRatePer: time.Second, KeyRateBurst: 1}
		f.dueOf(t, "k", "a", "b", "c")
		l := f.keyRated(t, 1, limit).Leases[0]
		require.Empty(t, f.keyRated(t, 10, limit).Leases, "b waits")
		reply := f.keyRated(t, 10, limit, storetest.Verdict(exchange.Release, l))
		require.NotContains(t, storetest.IDs(reply.Leases), "c", "a has given its token back")
		<-time.After(time.Minute)
		require.Equal(t, []string{"b"}, storetest.IDs(f.keyRated(t, 10, limit).Leases))
	})
}

// TestWokenTimerIsNotOvertaken checks that a timer which was parked, and is behind others
// of its key when it is woken, is claimed before them.
func TestWokenTimerIsNotOvertaken(t *testing.T) {
	for name, flow := range map[string]exchange.Flow{
		"one at once": {PerKey: 1}, "two at once": {PerKey: 2}, "with tokens": {PerKey: 2, KeyRateLimit: 1000, KeyRatePer: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, f *fixture) {
				f.dueOf(t, "k", "z", "y", "x")
				held := f.keyRated(t, max(flow.PerKey, 1), flow).Leases
				base := time.Now().Add(-30 * time.Minute)
				for i, id := range []string{"free", "w", "v"} {
					f.schedule(t, Entry{ID: id, Key: [...]string{"", "k", "k"}[i], Payload: []byte("later"), At: base.Add(time.Duration(i) * time.Second)})
				}
				require.Equal(t, []string{"free"}, storetest.IDs(f.keyRated(t, 1, flow).Leases), "x is parked")
				var claimed []string
				for range 5 {
					for _, l := range held {
						f.keyRated(t, 0, flow, ack(l))
						claimed = append(claimed, l.ID)
					}
					held = f.keyRated(t, 1, flow).Leases
				}
				require.Equal(t, []string{"z", "y", "x", "w", "v"}, claimed)
			})
		})
	}
}

//go:build !race

package timers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestLongRunRateIsNeverExceeded checks both rate limits for many nodes that ask at
// every opportunity, send exchanges again whose answers were lost, release leases and
// fail: at no instant were more timers started since the beginning than burst +
// rate · time; and the rate is reached.
func TestLongRunRateIsNeverExceeded(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]exchange.Flow{
		"topic": {RateLimit: 50, RatePer: time.Second, RateBurst: 7},
		"key":   {KeyRateLimit: 50, KeyRatePer: time.Second, KeyRateBurst: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				runForLong(t, newFixture(t, rdb), limit)
			})
		})
	}
}

func runForLong(t *testing.T, f *fixture, limit exchange.Flow) {
	t.Helper()
	const timers, nodes = 100, 8
	entries := make([]Entry, timers)
	for i := range entries {
		entries[i] = Entry{ID: fmt.Sprintf("%06d", i), Key: "k", At: time.Now().Add(-time.Hour)}
	}
	f.schedule(t, entries...)
	holders, left := make([]*fixture, nodes), make([][]exchange.Settlement, nodes)
	for i := range holders {
		holders[i] = f.holder(SourceOptions{})
	}
	began, started := time.Now(), 0
	for ended := 0; ended < timers; {
		require.Less(t, time.Since(began), time.Minute, "%d of %d timers have ended", ended, timers)
		n := rand.IntN(nodes)
		r := holders[n].Request(1+rand.IntN(20), time.Hour)
		r.Flow, r.Settle = limit, left[n]
		reply := holders[n].Run(t, r)
		for range rand.IntN(3) { // the answer is lost
			require.Equal(t, storetest.IDs(reply.Leases), storetest.IDs(holders[n].Run(t, r).Leases))
		}
		left[n] = nil
		for _, s := range r.Settle {
			if s.Verdict == exchange.Ack {
				ended++
			}
		}
		for _, l := range reply.Leases {
			verdict := []exchange.Verdict{exchange.Ack, exchange.Ack, exchange.Ack, exchange.Nack, exchange.Release}[rand.IntN(5)]
			if verdict != exchange.Release {
				started++
			}
			left[n] = append(left[n], storetest.Verdict(verdict, l))
		}
		bound := 7 + 50*time.Since(began).Seconds() + 0.01
		require.LessOrEqual(t, float64(started), bound, "after %v", time.Since(began))
		<-time.After(time.Duration(rand.IntN(8)) * time.Millisecond)
	}
	// Polls at random instants miss tokens, those of a key in particular.
	require.Greater(t, float64(started), 0.4*50*time.Since(began).Seconds(), "the limit does not stop the topic")
}

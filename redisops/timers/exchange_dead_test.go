package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestDeadLetterHasPayloadAndReason(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		leases := f.Claim(t, 2).Leases
		reject := storetest.Verdict(exchange.DeadLetter, leases[0])
		reject.Reason = "no such account"
		nack := storetest.Verdict(exchange.Nack, leases[1])
		require.Empty(t, f.Settle(t, reject, nack).Refused)
		_, err := f.Get(t.Context(), f.topic, "a")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
		dead, next, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 0)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, dead, 1)
		d := dead[0]
		require.Equal(t, "a", d.ID)
		require.Equal(t, "body of a", string(d.Payload))
		require.Equal(t, "no such account", d.Reason)
		require.Equal(t, 1, d.Claims)
		require.Equal(t, leases[0].Activation, d.Activation)
		require.WithinDuration(t, time.Now(), d.At, time.Minute)
	})
}

func TestDeadLettersByPageAndCap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("%02d", i))
		}
		f.due(t, names...)
		var list []exchange.Settlement
		for _, l := range f.Claim(t, 30).Leases {
			list = append(list, storetest.Verdict(exchange.DeadLetter, l))
		}
		f.Settle(t, list...)
		var got []string
		after := ""
		for {
			dead, next, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, after, 7)
			require.NoError(t, err)
			require.LessOrEqual(t, len(dead), 7)
			for _, d := range dead {
				got = append(got, d.ID)
			}
			if after = next; next == "" {
				break
			}
		}
		require.Equal(t, names, got)
		_, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "nonsense", 7)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	})
}

// TestOldestDeadLettersLeaveAboveCap uses many dead letters, because Redis
// trims a stream by whole nodes of 100 entries.
func TestOldestDeadLettersLeaveAboveCap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, numbered(claimMost)...)
		g := f.holder(SourceOptions{DeadCap: 100})
		var list []exchange.Settlement
		for _, l := range g.Claim(t, claimMost).Leases {
			list = append(list, storetest.Verdict(exchange.DeadLetter, l))
		}
		require.Empty(t, g.Settle(t, list...).Refused)
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.GreaterOrEqual(t, stats.Dead, int64(100))
		require.LessOrEqual(t, stats.Dead, int64(200))
		last := f.rdb.XRevRangeN(t.Context(), f.key.Dead, "+", "-", 1).Val()
		require.Equal(t, fmt.Sprintf("%05d", claimMost-1), last[0].Values["id"], "the newest stays")
	})
}

func TestNeverSettledIsDeadLettered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		g := f.holder(SourceOptions{MaxClaims: 2, DeadCap: 1000})
		claims := 0
		require.Eventually(t, func() bool {
			claims += len(g.Run(t, g.Request(1, time.Millisecond)).Leases)
			stats, err := f.Stats(t.Context(), f.topic)
			return err == nil && stats.Dead == 1
		}, 30*time.Second, 2*time.Millisecond)
		require.Equal(t, 2, claims)
		dead, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 1)
		require.NoError(t, err)
		require.Equal(t, "never settled", dead[0].Reason)
		require.Equal(t, 2, dead[0].Claims)
	})
}

// TestDeadLetterHasKeyThatItsNodeDoesNotKnow has timers with keys end as dead letters at a
// node that has not noticed that its topic has such timers.
func TestDeadLetterHasKeyThatItsNodeDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, flow := range map[string]exchange.Flow{"plain": {}, "limited": {MaxInFlight: 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				g := f.holder(SourceOptions{MaxClaims: 2})
				claim := func(ttl time.Duration, settle ...exchange.Settlement) []exchange.Lease {
					r := g.Request(10, ttl)
					r.Flow, r.Settle = flow, settle
					return g.Run(t, r).Leases
				}
				past := time.Unix(1000, 0)
				_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "rejected", At: past, Key: "k 1"})
				require.NoError(t, err)
				l := claim(time.Minute)
				claim(time.Minute, storetest.Verdict(exchange.DeadLetter, l[0]))
				_, err = f.Schedule(t.Context(), f.topic, Entry{ID: "lost", At: past, Key: "k2"}, Entry{ID: "keyless", At: past})
				require.NoError(t, err)
				var dead []DeadLetter
				require.Eventually(t, func() bool {
					claim(time.Millisecond)
					dead, _, err = f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 10)
					return err == nil && len(dead) == 3
				}, 30*time.Second, 2*time.Millisecond)
				keys := map[string]string{}
				for _, d := range dead {
					keys[d.ID] = d.Key
				}
				require.Equal(t, map[string]string{"rejected": "k 1", "lost": "k2", "keyless": ""}, keys)
			})
		})
	}
}

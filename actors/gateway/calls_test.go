package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/actors/internal/principal"
)

var parties = []principal.Party{{}, {Principal: "a", Host: "h"}, {Principal: "b", Host: "h"}, {Host: "h"}, {Principal: "a", Host: "i"}}

// TestCallsKeepTheirOrder draws requests about a few timers, which end in any order.
// It checks that the requests about a timer run one after the other in their order
// of arrival, that none is forgotten, and that never more run than MaxRunning plus
// one for each party.
func TestCallsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := NewCalls()
		var running []*Call
		came, ended := map[string][]*Call{}, map[string]int{} // by key
		place := map[*Call]map[string]int{}
		begin := func() {
			for c := q.Begin(); c != nil; c = q.Begin() {
				running = append(running, c)
				for key, n := range place[c] {
					require.Equal(t, n, ended[key], "earlier calls about the timer must have ended")
				}
			}
			require.Len(t, running, q.Running())
			require.LessOrEqual(t, len(running), MaxRunning+len(parties))
			for _, of := range q.turns {
				mine := q.quota.principals[of.Holder()].running
				require.Positive(t, mine)
				require.LessOrEqual(t, mine, MaxPrincipalRunning)
			}
		}
		end := func(i int) {
			c := running[i]
			running = append(running[:i], running[i+1:]...)
			q.End(c)
			for key := range place[c] {
				ended[key]++
			}
		}
		many := rapid.SampledFrom([]int{5, 500}).Draw(t, "timers")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(running) > 0 && rapid.Bool().Draw(t, "end") {
				end(rapid.IntRange(0, len(running)-1).Draw(t, "which"))
			} else {
				c := &Call{Size: rapid.IntRange(0, 100).Draw(t, "size"), Of: rapid.SampledFrom(parties).Draw(t, "of")}
				place[c] = map[string]int{}
				for range rapid.IntRange(0, 3).Draw(t, "keys") {
					key := string(rune('a' + rapid.IntRange(0, many).Draw(t, "key")))
					if _, twice := place[c][key]; !twice {
						place[c][key] = len(came[key])
						came[key] = append(came[key], c)
					}
					c.Keys = append(c.Keys, key)
				}
				q.Add(c)
			}
			begin()
		}
		for len(running) > 0 {
			end(0)
			begin()
		}
		require.True(t, q.idle())
		require.Equal(t, newQuota(), q.quota, "parties without calls use no memory")
		require.Empty(t, q.Last)
		require.Empty(t, q.ready)
		require.Empty(t, q.turns)
	})
}

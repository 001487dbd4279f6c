package timers

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// attempts are what a timer has counted.
type attempts struct{ claims, failures int }

// TestTurnsLeaveAttemptsAsTheyAre fails timers and gives them back, at random, so that a timer
// with attempts is passed over, parked and started in one exchange: no count may be lost.
func TestTurnsLeaveAttemptsAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, flow := range fairFlows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				random := rand.New(rand.NewPCG(1, 2))
				for _, key := range []string{"a", "b", "c"} {
					f.backlog(t, key, 40)
				}
				counted := map[string]attempts{}
				var held []exchange.Lease
				for range 300 {
					var settle []exchange.Settlement
					random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
					for range random.IntN(len(held) + 1) {
						l := held[0]
						held = held[1:]
						s, n := ack(l), counted[l.ID]
						switch random.IntN(8) {
						case 0:
							s.Verdict, n = exchange.Ack, attempts{}
						case 1, 2, 3:
							s.Verdict = exchange.Release
							n.claims--
						default:
							s.Verdict = exchange.Nack
							n.failures++
						}
						counted[l.ID], settle = n, append(settle, s)
					}
					for _, l := range f.fairly(t, flow, random.IntN(30), settle...) {
						n := counted[l.ID]
						require.Equal(t, attempts{n.claims + 1, n.failures}, attempts{l.Claims, l.Failures}, l.ID)
						counted[l.ID], held = attempts{l.Claims, l.Failures}, append(held, l)
					}
				}
			})
		})
	}
}

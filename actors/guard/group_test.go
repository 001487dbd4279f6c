package guard

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestGroupSharesByWeight has topics that always want places, and frees the places in
// any order. Each takes its part, also the lightest.
func TestGroupSharesByWeight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := &Group{}
		var members []*Member
		taken, turn, total := map[*Member]int{}, map[*Member]bool{}, 0
		for range rapid.IntRange(2, 5).Draw(t, "topics") {
			weight := rapid.IntRange(1, 100).Draw(t, "weight")
			m := g.Member(float64(weight))
			m.Enter(0, func() { turn[m] = true })
			m.SetBound(10)
			members, total = append(members, m), total+weight
		}
		take := func(m *Member) {
			turn[m] = false
			for n := m.Take(10); n > 0; n = m.Take(10) {
				taken[m] += n
			}
			require.GreaterOrEqual(t, g.free(), 0)
		}
		for _, m := range members {
			take(m)
		}
		rounds, random := 3000, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rounds {
			busy := members[random.IntN(len(members))]
			for busy.used == 0 {
				busy = members[random.IntN(len(members))]
			}
			busy.Return(busy.used - 1)
			take(busy) // the same exchange settles and claims
			for again := true; again; {
				again = false
				for _, m := range members {
					if turn[m] {
						take(m)
						again = true
					}
				}
			}
			require.Zero(t, g.free(), "no place stays free while topics wait")
		}
		for _, m := range members {
			want := float64(rounds+10) * m.weight / float64(total)
			require.InDelta(t, want, taken[m], 12+want/20, "weight %v of %d", m.weight, total)
		}
	})
}

// TestTopicAloneTakesAllPlaces has a topic that wants nothing, ends or comes late.
func TestTopicAloneTakesAllPlaces(t *testing.T) {
	t.Parallel()
	g, woken := &Group{}, 0
	a, b := g.Member(1), g.Member(100)
	a.Enter(0, func() { woken++ })
	b.Enter(0, func() {})
	a.SetBound(5)
	b.SetBound(10)
	require.Equal(t, 10, a.Take(20))
	require.Zero(t, b.Take(1))
	a.Return(9)
	require.Equal(t, 1, b.Take(5), "what is free")
	require.Zero(t, a.Take(1))
	b.Return(0)
	require.Equal(t, 1, woken)
	a.Compete(false)
	b.Leave()
	require.Equal(t, -4, g.free(), "the bound is that of the topic that is left")
	a.Return(2)
	require.Equal(t, 3, a.Take(20))
}

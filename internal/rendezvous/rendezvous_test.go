package rendezvous_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/rendezvous"
)

func members(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("host-%d/4711/wakebell", i)
	}
	return all
}

func TestRanksArePermutation(t *testing.T) {
	t.Parallel()
	all := members(20)
	for k := range 100 {
		key := fmt.Sprintf("topic-%d", k)
		seen := map[int]bool{}
		for _, m := range all {
			seen[rendezvous.Rank(key, m, all)] = true
		}
		require.Len(t, seen, len(all))
		require.Zero(t, rendezvous.Rank(key, rendezvous.First(key, all), all))
	}
	require.Equal(t, -1, rendezvous.Rank("t", "other", all))
	require.Empty(t, rendezvous.First("t", nil))
}

func TestKeysAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	all, counts := members(20), map[string]int{}
	for k := range 20_000 {
		counts[rendezvous.First(fmt.Sprintf("topic-%d", k), all)]++
	}
	for m, n := range counts {
		require.InDelta(t, 1000, n, 150, m)
	}
}

func TestOnlyKeysOfLeavingMemberMove(t *testing.T) {
	t.Parallel()
	all := members(10)
	without := slices.Delete(slices.Clone(all), 3, 4)
	for k := range 1000 {
		key := fmt.Sprintf("topic-%d", k)
		if before := rendezvous.First(key, all); before != all[3] {
			require.Equal(t, before, rendezvous.First(key, without))
		} else {
			require.Equal(t, 1, rendezvous.Rank(key, rendezvous.First(key, without), all), "the second takes over")
		}
	}
}

// TestWeightsNeverChange keeps nodes of different versions in agreement.
func TestWeightsNeverChange(t *testing.T) {
	t.Parallel()
	all := members(5)
	got := make([]int, len(all))
	for i, m := range all {
		got[i] = rendezvous.Rank("invoices", m, all)
	}
	require.Equal(t, []int{3, 1, 0, 4, 2}, got)
}

package limits

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBudgetBoundsPrincipalsHostsAndAll(t *testing.T) {
	t.Parallel()
	b := NewBudget(Bound{Name: "places", Principal: 2, Host: 3, Total: 4})
	require.NoError(t, b.Take(Party{"a", "h"}, 2))
	require.EqualError(t, b.Take(Party{"a", "g"}, 1), "too many places of this principal")
	require.NoError(t, b.Take(Party{"b", "h"}, 1))
	require.EqualError(t, b.Take(Party{"c", "h"}, 1), "too many places of this host")
	require.NoError(t, b.Take(Party{"c", "g"}, 1))
	require.EqualError(t, b.Take(Party{"d", "i"}, 1), "too many places")
	b.Give(Party{"a", "h"}, 2)
	b.Give(Party{"b", "h"}, 1)
	b.Give(Party{"c", "g"}, 1)
	require.Equal(t, NewBudget(b.bound), b, "parties without a usage are removed")

	require.NoError(t, b.Take(Party{"", "h"}, 3), "a party without a principal has the bounds of its host")
	require.EqualError(t, b.Take(Party{"", "h"}, 1), "too many places of this host")
	require.NoError(t, b.Take(Party{"", "i"}, 1))
}

func TestShareIsReservedForEachPrincipal(t *testing.T) {
	t.Parallel()
	b := NewBudget(Bound{Name: "bytes", Holder: 10, Principal: 15, Host: 20, Total: 30, Share: 2})
	a1, a2 := b.Holder(Party{"a", "h"}), b.Holder(Party{"a", "h"})
	require.NoError(t, a1.Take(10))
	require.EqualError(t, a1.Take(1), "too many bytes of this stream or subscription")
	require.NoError(t, a2.Take(6), "one item is not refused because of other holders of the principal")
	require.EqualError(t, a2.Take(1), "too many bytes of this principal")
	other := b.Holder(Party{"b", "h"})
	require.NoError(t, other.Take(2), "a principal has its share")
	require.NoError(t, other.Take(2))
	require.EqualError(t, other.Take(1), "too many bytes of this host")
	far := b.Holder(Party{"c", "elsewhere"})
	require.NoError(t, far.Take(10), "the total has room")
	require.Error(t, far.Take(1))
	require.EqualError(t, b.Holder(Party{"c", "elsewhere"}).Take(1), "too many bytes")
	unnamed := b.Holder(Party{"", "third"})
	require.NoError(t, unnamed.Take(12), "one item of a principal, or of a host without one, is not refused")
	require.Error(t, unnamed.Take(1))
	require.NoError(t, b.Holder(Party{"", "fourth"}).Take(2), "hosts without a principal have separate shares")

	unnamed.Clear()
	a1.Give(10)
	require.NoError(t, b.Holder(Party{"c", "elsewhere"}).Take(1), "others can take what is returned")
}

func TestAwaitWaitsForReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Bound{Name: "places", Total: 2})
		a := Party{"a", "h"}
		require.NoError(t, b.Take(a, 2))
		took := make(chan error, 1)
		go func() { took <- b.Await(Party{"b", "h"}, 2, time.Minute, nil) }()
		for range 2 {
			synctest.Wait()
			require.Empty(t, took)
			b.Give(a, 1)
		}
		require.NoError(t, <-took)

		began := time.Now()
		require.EqualError(t, b.Await(a, 1, time.Minute, nil), "too many places")
		require.Equal(t, time.Minute, time.Since(began))
		end := make(chan struct{})
		close(end)
		require.Error(t, b.Await(a, 1, time.Minute, end))
		require.Equal(t, time.Minute, time.Since(began), "it does not wait after end is closed")
	})
}

// The counts of a budget equal the sums of its holders after any sequence of calls.
func TestBudgetIsSumOfItsHolders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := NewBudget(Bound{Holder: 100, Principal: 200, Host: 250, Total: 400, Share: 10})
		var all []*Holder
		for _, principal := range []string{"a", "b", ""} {
			for _, host := range []string{"x", "y"} {
				all = append(all, b.Holder(Party{principal, host}))
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			h := rapid.SampledFrom(all).Draw(t, "holder")
			n := rapid.IntRange(1, 60).Draw(t, "bytes")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				before := h.used
				if h.Take(n) != nil {
					n = 0
				}
				require.Equal(t, before+n, h.used)
			case 2:
				h.Give(n)
			default:
				h.Clear()
			}
			total, owners, hosts := 0, map[Party]int{}, map[string]int{}
			for _, h := range all {
				if h.used > 0 {
					total += h.used
					owners[h.party.owner()] += h.used
					hosts[h.party.Host] += h.used
				}
			}
			require.Equal(t, total, b.total)
			require.Equal(t, owners, b.owners)
			require.Equal(t, hosts, b.hosts)
			require.LessOrEqual(t, total, 400+4*60, "no more than the bounds, and one item for each owner")
		}
	})
}

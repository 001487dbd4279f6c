package remote

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages"
)

func TestABudgetBoundsHoldersPrincipalsHostsAndAll(t *testing.T) {
	t.Parallel()
	b := newBudget(byteBounds{holder: 10, principal: 15, host: 20, total: 30, share: 2})
	a1, a2 := b.holder("a", "h"), b.holder("a", "h")
	require.True(t, a1.take(10))
	require.False(t, a1.take(1), "the holder has as much as it may")
	require.True(t, a2.take(6), "one item is not refused for what others of the principal have")
	require.False(t, a2.take(1), "the principal has as much as it may")
	other := b.holder("b", "h")
	require.True(t, other.take(2), "a principal has its share")
	require.True(t, other.take(2))
	require.False(t, other.take(1), "the host has as much as it may")
	far := b.holder("c", "elsewhere")
	require.True(t, far.take(10), "there is room in all")
	require.False(t, far.take(1), "there is no room in all")
	require.True(t, b.holder("d", "yet another").take(2), "a principal has its share, whatever others hold")

	a1.give(10)
	require.True(t, far.take(1) || b.holder("c", "elsewhere").take(1))
	for _, h := range []*holder{a1, a2, other, far} {
		h.clear()
	}
	require.Len(t, b.principals, 2) // those of the holders that this test did not keep
}

// Whatever is taken and given back, the sums are those of the holders.
func TestABudgetIsTheSumOfItsHolders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBudget(byteBounds{holder: 100, principal: 200, host: 250, total: 400, share: 10})
		var all []*holder
		for _, principal := range []string{"a", "b", "c"} {
			for _, host := range []string{"x", "y"} {
				all = append(all, b.holder(principal, host))
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			h := rapid.SampledFrom(all).Draw(t, "holder")
			n := rapid.IntRange(1, 60).Draw(t, "bytes")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				h.take(n)
			case 2:
				h.give(n)
			default:
				h.clear()
			}
			total, principals, hosts := 0, map[string]int{}, map[string]int{}
			for _, h := range all {
				if h.used > 0 {
					total += h.used
					principals[h.principal] += h.used
					hosts[h.host] += h.used
				}
			}
			require.Equal(t, total, b.total)
			require.Equal(t, principals, b.principals)
			require.Equal(t, hosts, b.hosts)
			require.LessOrEqual(t, total, 400+3*60, "no more than the bounds, and one item for each principal")
		}
	})
}

func TestRequestsWaitForRoomAndAPeerThatReadsNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		get, timer := fullName(&messages.GetTimerRequest{}), fullName(&messages.GetTimerResponse{})
		d := &debts{of: newBudget(answerBounds).holder("a", "h")}
		for range maxStreamAnswerBytes / firstHeavy {
			require.NoError(t, d.ask(t.Context(), get))
		}
		asked := make(chan error, 1)
		go func() { asked <- d.ask(t.Context(), get) }()
		synctest.Wait()
		require.Empty(t, asked)
		require.True(t, d.answered(timer, 1000), "an answer takes less than what was reserved")
		require.NoError(t, <-asked)

		for range maxStreamAnswerBytes/firstHeavy - 1 {
			require.True(t, d.answered(timer, 1<<20))
		}
		began := time.Now()
		for range 2 {
			if err := d.ask(t.Context(), get); err != nil {
				require.ErrorIs(t, err, errNotReading)
				require.GreaterOrEqual(t, time.Since(began), owedFor)
				return
			}
		}
		require.Fail(t, "there was room for more")
	})
}

// What an Error answers is not known: the books are right again in the end.
func TestErrorsLeaveNoDebts(t *testing.T) {
	t.Parallel()
	b := newBudget(answerBounds)
	d := &debts{of: b.holder("a", "h")}
	require.NoError(t, d.ask(t.Context(), fullName(&messages.AcquireTurnRequest{})))
	for range 10_000 {
		require.NoError(t, d.ask(t.Context(), fullName(&messages.GetTimerRequest{})))
		require.NoError(t, d.ask(t.Context(), fullName(&messages.GetTopicStatsRequest{})))
		for range 2 {
			require.True(t, d.answered(fullName(&messages.Error{}), 300))
			d.paid(300)
		}
	}
	require.True(t, d.answered(fullName(&messages.Turn{}), 300))
	d.paid(300)
	require.Zero(t, b.total)
}

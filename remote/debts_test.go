package remote

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

func TestRequestsWaitForRoomAndAPeerThatReadsNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		get, timer := fullName(&messages.GetTimerRequest{}), fullName(&messages.Timer{})
		d := &debts{of: limits.NewBudget(limits.Answers).Holder(limits.Party{Principal: "a", Host: "h"})}
		for range limits.Answers.Holder / firstHeavy {
			require.NoError(t, d.ask(t.Context(), get))
		}
		asked := make(chan error, 1)
		go func() { asked <- d.ask(t.Context(), get) }()
		synctest.Wait()
		require.Empty(t, asked)
		require.True(t, d.answered(timer, 1000), "an answer takes less than what was reserved")
		require.NoError(t, <-asked)

		for range limits.Answers.Holder/firstHeavy - 1 {
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
	d := &debts{of: limits.NewBudget(limits.Answers).Holder(limits.Party{Principal: "a", Host: "h"})}
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
	require.Zero(t, d.of.InUse())
}

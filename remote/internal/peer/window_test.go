package peer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

func TestRequestsWaitForRoomUntilPeerIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		get, timer := wire.FullName(&messages.GetTimerRequest{}), wire.FullName(&messages.GetTimerResponse{})
		d := &ResponseWindow{Of: limits.NewBudget(limits.Answers).Holder(limits.Party{Principal: "a", Host: "h"})}
		for range limits.Answers.Holder / firstHeavy {
			require.NoError(t, d.Ask(t.Context(), get))
		}
		asked := make(chan error, 1)
		go func() { asked <- d.Ask(t.Context(), get) }()
		synctest.Wait()
		require.Empty(t, asked)
		require.True(t, d.Answered(timer, 1000), "the response is smaller than its reservation")
		require.NoError(t, <-asked)

		for range limits.Answers.Holder/firstHeavy - 1 {
			require.True(t, d.Answered(timer, 1<<20))
		}
		began := time.Now()
		for range 2 {
			if err := d.Ask(t.Context(), get); err != nil {
				require.ErrorIs(t, err, ErrNotReading)
				require.GreaterOrEqual(t, time.Since(began), ReadTimeout)
				return
			}
		}
		require.Fail(t, "there was room for more")
	})
}

// It is unknown which request an Error answers, but the counts return to zero.
func TestErrorsLeaveWindowEmpty(t *testing.T) {
	t.Parallel()
	d := &ResponseWindow{Of: limits.NewBudget(limits.Answers).Holder(limits.Party{Principal: "a", Host: "h"})}
	require.NoError(t, d.Ask(t.Context(), wire.FullName(&messages.AcquireTurnRequest{})))
	for range 10_000 {
		require.NoError(t, d.Ask(t.Context(), wire.FullName(&messages.GetTimerRequest{})))
		require.NoError(t, d.Ask(t.Context(), wire.FullName(&messages.GetTopicStatsRequest{})))
		for range 2 {
			require.True(t, d.Answered(wire.FullName(&messages.Error{}), 300))
			d.Free(300)
		}
	}
	require.True(t, d.Answered(wire.FullName(&messages.Turn{}), 300))
	d.Free(300)
	require.Zero(t, d.Of.InUse())
}

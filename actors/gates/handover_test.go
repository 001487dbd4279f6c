package gates

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/gate"
)

// TestLateReleaseOfTurnThatWasPassedOnIsRefused releases a turn that the store does
// not know of yet. After the lease has expired the release is refused, even if the
// timer that ends the turn has not fired yet.
func TestLateReleaseOfTurnThatWasPassedOnIsRefused(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]time.Duration{"late": -time.Millisecond, "in time": time.Minute} {
		incarnation := &incarnation{}
		k := newGatekeeper()
		k.incarnation = incarnation
		turn := &Turn{
			Gate: "gate", Fence: 2, incarnation: incarnation, unreported: true, knownTicket: 1,
			until: time.Now().Add(until), timer: time.NewTimer(time.Hour),
		}
		turn.ctx, turn.end = context.WithCancelCause(t.Context())
		q := k.queue("gate")
		q.turn, q.inFlight = turn, &gateRequest{} // further requests wait
		var err error
		k.release(releaseTurn{turn, func(e error) { err = e }})
		if until < 0 {
			require.ErrorIs(t, err, ErrTurnLost, name)
			require.ErrorIs(t, context.Cause(turn.Context()), ErrTurnLost, name)
		} else {
			require.NoError(t, err, name)
			require.ErrorIs(t, context.Cause(turn.Context()), context.Canceled, name)
		}
		require.Equal(t, []ticketReturn{{ticket: gate.Ticket(2), passed: true}}, q.returns, name)
	}
}

package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestFlowControlThatHoldsNothingBack checks that an exchange with flow control does
// what one without it does.
func TestFlowControlThatHoldsNothingBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		request := func(want int) *exchange.Request {
			r := f.Request(want, time.Minute)
			r.Flow = exchange.Flow{MaxInFlight: 100}
			return r
		}
		r := request(10)
		reply := f.Run(t, r)
		require.Equal(t, []string{"a", "b"}, storetest.IDs(reply.Leases))
		require.Zero(t, reply.Held)
		again := f.Run(t, r)
		require.Equal(t, reply.Leases, again.Leases, "the answer is repeated")
		require.Zero(t, again.Held)

		r = request(10)
		r.Extend = []exchange.Held{storetest.Verdict(exchange.Ack, reply.Leases[1]).Held}
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Nack, reply.Leases[0])}
		r.Settle[0].Delay, r.Settle[0].Reason = time.Hour, "an error"
		reply = f.Run(t, r)
		require.Empty(t, reply.Refused)
		require.Empty(t, reply.Leases)
		require.NotEmpty(t, reply.Extended)
		require.Equal(t, "an error", f.get(t, "a").LastError)
	})
}

package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// An exchange counts the timers that it made wait for a token: the next one of each key. The
// others are parked, and a repeated answer counts nothing again.
func TestTimersThatWaitForTokenAreCounted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		f.dueOf(t, "other", "d", "e")
		r := f.Request(10, time.Minute)
		r.Flow = exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour}
		reply := f.Run(t, r)
		require.ElementsMatch(t, []string{"a", "d"}, storetest.IDs(reply.Leases))
		require.Equal(t, 2, reply.KeyHeld)
		require.Zero(t, f.Run(t, r).KeyHeld)
		require.Zero(t, f.perKey(t, 1, 10).KeyHeld, "there is no such limit")
	})
}

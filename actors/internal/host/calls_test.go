package host

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestCallsOfKeyRunFewAtOnce checks that calls of a key wait for one another, run once each, and
// delay no call of another key.
func TestCallsOfKeyRunFewAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls Calls
		var running, ended atomic.Int64
		answered := make(chan struct{})
		for range 10 * atOnce {
			calls.Go("hangs", func() {
				running.Add(1)
				<-answered
				running.Add(-1)
				ended.Add(1)
			})
		}
		other := false
		calls.Go("answers", func() { other = true })
		synctest.Wait()
		require.EqualValues(t, atOnce, running.Load())
		require.True(t, other, "a call of another key does not wait")
		for range 3 {
			answered <- struct{}{}
		}
		synctest.Wait()
		require.EqualValues(t, atOnce, running.Load(), "the next ones have begun")
		require.EqualValues(t, 3, ended.Load())
		close(answered)
		synctest.Wait()
		require.EqualValues(t, 10*atOnce, ended.Load())
		require.Empty(t, calls.keys, "nothing is kept of keys without calls")
	})
}

package poller

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkersComeOneAfterOther checks that a batch of leases gets a worker, and then
// another when that one leaves leases which no worker takes.
func TestWorkersComeOneAfterOther(t *testing.T) {
	t.Parallel()
	asked := 0
	r := &runQueue{limit: 3, toPoller: func(message any) {
		require.IsType(t, workerNeeded{}, message)
		asked++
	}}
	r.readyCond = sync.NewCond(&r.readyMu)
	require.False(t, r.lacksWorker(), "there is nothing to do")
	for range 5 {
		r.push(&lease{})
	}
	require.True(t, r.lacksWorker())
	r.workerStarts()
	require.False(t, r.lacksWorker(), "one is on its way")

	first := &worker{fresh: true}
	require.NotNil(t, r.pull(first))
	require.Equal(t, 1, asked, "four leases wait")
	require.NotNil(t, r.pull(first))
	require.Equal(t, 1, asked, "the poller knows")
	require.True(t, r.lacksWorker())
	r.workerStarts()
	second := &worker{fresh: true}
	require.NotNil(t, r.pull(second))
	require.Equal(t, 2, asked)
	require.True(t, r.lacksWorker())
	r.workerStarts()
	require.NotNil(t, r.pull(&worker{fresh: true}))
	require.Equal(t, 2, asked, "no more may run at once")
	require.False(t, r.lacksWorker())
	r.leave(second)
	require.True(t, r.lacksWorker(), "it has left a lease behind")
}

package host

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestDispatcherKeepsItsGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{}
		for range 10 {
			d.Schedule(func() {})
			synctest.Wait()
			require.Len(t, d.idle, 1, "one after the other needs one goroutine")
		}
		var ran sync.WaitGroup
		hold := make(chan struct{})
		for range maxIdle + 10 {
			ran.Add(1)
			d.Schedule(func() { defer ran.Done(); <-hold })
		}
		synctest.Wait()
		require.Empty(t, d.idle, "all run at once")
		close(hold)
		ran.Wait()
		synctest.Wait()
		require.Len(t, d.idle, maxIdle, "but not all are kept")
		d.Close()
		done := false
		d.Schedule(func() { done = true })
		synctest.Wait()
		require.True(t, done, "an actor that stops late still gets its messages")
	}) // which ends when all goroutines have returned
}

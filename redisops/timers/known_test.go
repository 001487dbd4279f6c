package timers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func (k *known) size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.young) + len(k.older)
}

// TestTopicsThatStoreRemembersAreBounded checks that a client that schedules on
// ever new topics stores a bounded number of them.
func TestTopicsThatStoreRemembersAreBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i := range 3 * maxKnown {
			require.True(t, f.topics.register(fmt.Sprint(i)))
			require.LessOrEqual(t, f.topics.size(), 2*maxKnown)
		}
		f.due(t, "a")
		require.False(t, f.topics.register(f.topic), "a schedule has")
		require.False(t, f.topics.register(fmt.Sprint(3*maxKnown-1)))
		require.True(t, f.topics.register("0"), "the oldest topics are removed")
	})
}

func TestTopicsThatAreNotUsedAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var k known
		require.True(t, k.register("a"))
		require.False(t, k.register("a"))
		<-time.After(registerEvery)
		require.True(t, k.register("a"))
		k.forget("a")
		require.True(t, k.register("a"))

		for range 2 {
			<-time.After(registerEvery)
			require.True(t, k.register("b"))
		}
		require.Equal(t, 1, k.size())
	})
}

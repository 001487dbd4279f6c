package layout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTopicsOfClusterWithoutMaster lists topics while the master that has their list
// is down.
func TestTopicsOfClusterWithoutMaster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t, "--cluster-require-full-coverage", "no")
	rdb := masters.Client(t)
	c := stacktest.Client(t, rdb, connection.Config{})
	of := map[string]string{} // the address of the master of a topic
	for i := range 20 {
		topic := wakebell.NewTopic[string](fmt.Sprintf("t%02d", i))
		_, err := topic.Schedule(t.Context(), c, "")
		require.NoError(t, err)
		master, err := rdb.MasterForKey(t.Context(), "timers_timeline:{"+topic.Name()+"}")
		require.NoError(t, err)
		of[topic.Name()] = master.Options().Addr
	}
	registry, err := rdb.MasterForKey(t.Context(), "timers_topics")
	require.NoError(t, err)
	list := func(discover bool) (names []string, last error) {
		for name, err := range c.Topics(t.Context(), discover, wakebelltype.Page{}) {
			require.NoError(t, last, "an error comes last")
			if last = err; err == nil {
				names = append(names, name)
			}
		}
		return names, last
	}
	names, err := list(false)
	require.NoError(t, err)
	require.Len(t, names, len(of))

	down := map[string]bool{registry.Options().Addr: true}
	for _, m := range masters {
		if down[m.Addr] {
			m.Kill()
		}
	}
	for _, discover := range []bool{false, true} {
		names, err = list(discover)
		require.ErrorIs(t, err, wakebell.ErrUnavailable)
		for topic, addr := range of {
			if down[addr] {
				require.NotContains(t, names, topic)
			} else {
				require.Contains(t, names, topic)
			}
		}
	}
}

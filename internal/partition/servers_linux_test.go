package partition_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/partition"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var hosts = []string{partition.Host(1), partition.Host(2), partition.Host(3), partition.Host(4)}

// others returns the hosts but one.
func others(host string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return h == host })
}

func isolate(n *partition.Network, host string) {
	n.Block([]string{host}, others(host))
	n.Block(others(host), []string{host})
}

// cutOff cuts a master off until the Sentinels of the others have another one. A machine that
// stalls may have made them elect one just before: that cut is healed, and another one made.
func cutOff(t *testing.T, n *partition.Network, w *partition.Watched) *partition.Server {
	t.Helper()
	for {
		old, first := w.Servers[0], w.Sentinels[0]
		if now := w.Master(t, first); now != nil {
			old = now
		}
		asked := first
		if first.Host == old.Host {
			asked = w.Sentinels[1]
		}
		isolate(n, old.Host)
		require.Eventually(t, func() bool {
			now := w.Master(t, asked)
			return now != nil && now != old
		}, time.Minute, 10*time.Millisecond)
		if old.Info(t, "replication", "role") == "master" {
			return old
		}
		n.Heal()
	}
}

// A master that is cut off stays a master, and takes writes; the Sentinels of the others
// have another one, which it follows when the cut is healed.
func TestSentinelsReplaceMasterThatIsCutOff(t *testing.T) {
	t.Parallel()
	n := partition.NewNetwork(t)
	w := partition.Sentinel(t, n, hosts, time.Second)
	old := cutOff(t, n, w)
	require.NoError(t, old.RDB.Set(t.Context(), "lost", "1", 0).Err())
	n.Heal()
	require.Eventually(t, func() bool {
		return old.Info(t, "replication", "master_link_status") == "up" && old.RDB.Exists(t.Context(), "lost").Val() == 0
	}, time.Minute, 10*time.Millisecond)
}

func TestClusterReplacesMasterThatIsCutOff(t *testing.T) {
	t.Parallel()
	n := partition.NewNetwork(t)
	pairs := partition.Cluster(t, n, hosts[:3], time.Second)
	isolate(n, hosts[0])
	require.Eventually(t, func() bool { return pairs[0].Replica.Info(t, "replication", "role") == "master" }, time.Minute, 10*time.Millisecond)
	n.Heal()
	require.Eventually(t, func() bool { return pairs[0].Master.Info(t, "replication", "master_link_status") == "up" }, time.Minute, 10*time.Millisecond)
}

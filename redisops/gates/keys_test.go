package gates

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// onNoCluster returns a store with the keys of a Cluster; it calls no server.
func onNoCluster(t *testing.T) *Store {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	s, err := New(rdb, wakebelltype.GateKeys{}, nil)
	require.NoError(t, err)
	return s
}

// Gates are spread evenly over the parts, and each part has a slot of its own. A few dozen
// names share parts by chance, as with any hash: 64 names leave a third of the parts empty.
func TestGatesAreSpreadOverSlots(t *testing.T) {
	t.Parallel()
	s := onNoCluster(t)
	for _, gates := range []int{4, 256, 1000, 10_000} {
		slots := map[int]int{}
		for i := range gates {
			name := fmt.Sprintf("account-%d", i)
			slots[layout.SlotOf(s.keys(name).state(name))]++
		}
		require.GreaterOrEqual(t, float64(len(slots)), 0.9*float64(min(gates, Parts)), gates)
		for _, n := range slots {
			require.LessOrEqual(t, n, 2*gates/Parts+12, gates)
		}
	}
}

// The part of a gate must stay the same for all versions: two processes that disagree
// could both have the turn.
func TestPartOfGateNeverChanges(t *testing.T) {
	t.Parallel()
	s := onNoCluster(t)
	require.Equal(t, 64, Parts)
	for name, want := range map[string]string{
		"deploy": "{gates:15}:state:deploy", "a:b": "{gates:55}:state:a:b",
	} {
		require.Equal(t, want, s.keys(name).state(name))
	}
}

func TestAllKeysOfGateAreInOneSlot(t *testing.T) {
	t.Parallel()
	s := onNoCluster(t)
	for _, name := range []string{"deploy", "{tagged}", "a:b", "}{"} {
		k := s.keys(name)
		for _, key := range []string{
			k.stream(name), k.guard(name), k.holds(name), k.exchange(name, "host:1:a"), k.Presence, k.Deadlines, k.Mark,
		} {
			require.Equal(t, layout.SlotOf(k.state(name)), layout.SlotOf(key), key)
		}
		require.Equal(t, "{gates}:signal:", k.channels(), "processes have one channel for all parts")
	}
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	k, err := NewKeyspace(wakebelltype.GateKeys{})
	require.NoError(t, err)
	for name, reserved := range map[string]bool{
		"{gates}:state": true, "{gates}:state:x": true, "{gates:7}:state": true, "{gates:63}:mark:x": true,
		"{gates:x}:state": false, "{gates}:states": false, "gate": false, "{other:7}:state": false, "{gates:7}": false,
	} {
		require.Equal(t, reserved, k.Reserves(name), name)
	}
}

package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
	formTimeout    = 30 * time.Second
	formPoll       = 20 * time.Millisecond
)

// Masters are the servers of a Redis Cluster, each with a third of the slots,
// in their order.
type Masters []*Server

// Cluster runs a Redis Cluster of three masters until the end of the test, and
// waits until each knows all slots. Args are options of each redis-server, as
// of [Start].
func Cluster(t testing.TB, args ...string) Masters {
	t.Helper()
	masters := make(Masters, clusterMasters)
	buses := make([]string, clusterMasters)
	for i := range masters {
		dir := t.TempDir()
		masters[i] = startWith(t, dir, func(port int) ([]string, error) {
			bus, err := freePort()
			buses[i] = strconv.Itoa(bus)
			return append(serverArgs(port, dir, args),
				"--cluster-enabled", "yes", "--cluster-port", buses[i], "--cluster-node-timeout", "10000"), err
		})
	}
	first := masters[0].Client(t)
	ctx := t.Context()
	for i, m := range masters {
		rdb := m.Client(t)
		low, high := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
		for _, command := range [][]any{
			{"CLUSTER", "ADDSLOTSRANGE", low, high},
			{"CLUSTER", "SET-CONFIG-EPOCH", i + 1},
		} {
			if err := rdb.Do(ctx, command...).Err(); err != nil {
				t.Fatalf("redistest: %v on %s: %v", command, m.Addr, err)
			}
		}
		if i == 0 {
			continue
		}
		if err := first.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", m.port, buses[i]).Err(); err != nil {
			t.Fatalf("redistest: meet %s: %v", m.Addr, err)
		}
	}
	for _, m := range masters {
		rdb := m.Client(t)
		await(t, "the cluster to form", func() error {
			info, err := rdb.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_size:%d", clusterMasters)} {
				if !strings.Contains(info, want) {
					return fmt.Errorf("%s: want %s in\n%s", m.Addr, want, info)
				}
			}
			return nil
		})
	}
	return masters
}

// Addrs are the host:port of all.
func (m Masters) Addrs() []string {
	addrs := make([]string, len(m))
	for i, s := range m {
		addrs[i] = s.Addr
	}
	return addrs
}

// Client connects to the Cluster until the end of the test.
func (m Masters) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: m.Addrs()})
	closeAfter(t, c)
	return c
}

// await fails the test when condition does not come true in time.
func await(t testing.TB, what string, condition func() error) {
	t.Helper()
	deadline := time.After(formTimeout)
	tick := time.NewTicker(formPoll)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("redistest: waited %v for %s: %v", formTimeout, what, err)
		case <-tick.C:
		}
	}
}

package redistest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
	formTimeout    = 60 * time.Second // a Sentinel does nothing for 30 s after it was stalled
	formPoll       = 20 * time.Millisecond
)

// Masters are the masters of a Redis Cluster. Each has a third of the slots, in
// ascending order.
type Masters []*Server

// Cluster runs a Redis Cluster of three masters until the end of the test, and
// waits until each knows all slots. Args are options of each redis-server, as in
// [Start].
func Cluster(t testing.TB, args ...string) Masters {
	t.Helper()
	masters, _ := formCluster(t, args)
	return masters
}

// member is a server of a Cluster with its bus port.
type member struct {
	*Server
	bus string
}

// startMember starts a server that is not yet connected to others.
func startMember(t testing.TB, args []string) member {
	t.Helper()
	m, err := memberIn(t.TempDir(), args)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	m.stopAfter(t)
	return m
}

// tempMember is startMember for a server that the caller closes.
func tempMember() (m member, err error) {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return m, fmt.Errorf("directory for redis-server: %w", err)
	}
	if m, err = memberIn(dir, nil); err != nil {
		return m, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

func memberIn(dir string, args []string) (m member, err error) {
	m.Server, err = start(dir, func(port int) ([]string, error) {
		bus, err := freePort()
		m.bus = strconv.Itoa(bus)
		return slices.Concat(serverArgs(port, dir, nil),
			[]string{"--cluster-enabled", "yes", "--cluster-port", m.bus, "--cluster-node-timeout", "10000"}, args), err
	})
	return m, err
}

// formCluster starts a Cluster; first is its first member.
func formCluster(t testing.TB, args []string) (masters Masters, first member) {
	t.Helper()
	var members []member
	for range clusterMasters {
		members = append(members, startMember(t, args))
	}
	return connect(t, members), members[0]
}

// connect makes masters of a Cluster.
func connect(t testing.TB, members []member) Masters {
	t.Helper()
	masters, err := form(t.Context(), members)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return masters
}

// awaitCluster waits until a server knows all slots and its CLUSTER INFO contains the
// wanted texts.
func awaitCluster(t testing.TB, s *Server, wanted ...string) {
	t.Helper()
	if err := s.awaitCluster(t.Context(), clusterMasters, wanted...); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}

// ReplicatedCluster is [Cluster] with a replica for each master, in the order of the
// masters. It waits until each replica is connected. A replica takes over from a
// master that is unreachable for nodeTimeout.
func ReplicatedCluster(t testing.TB, nodeTimeout time.Duration, args ...string) (masters, replicas Masters) {
	t.Helper()
	args = append([]string{
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
		"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
		"--repl-ping-replica-period", "1", // CLUSTER SLOTS lists no replica before it has received something
	}, args...)
	masters, first := formCluster(t, args)
	for range masters {
		r := startMember(t, args)
		if err := first.meet(t.Context(), r); err != nil {
			t.Fatalf("redistest: %v", err)
		}
		replicas = append(replicas, r.Server)
	}
	for i, r := range replicas {
		awaitCluster(t, r, "cluster_known_nodes:"+strconv.Itoa(2*clusterMasters))
		rdb := r.Client(t)
		id, err := masters[i].Client(t).Do(t.Context(), "CLUSTER", "MYID").Text()
		if err == nil {
			err = rdb.Do(t.Context(), "CLUSTER", "REPLICATE", id).Err()
		}
		if err != nil {
			t.Fatalf("redistest: make %s a replica of %s: %v", r.Addr, masters[i].Addr, err)
		}
		awaitReplica(t, rdb)
	}
	for _, m := range slices.Concat(masters, replicas) { // a client asks any of them for the slots
		rdb := m.Client(t)
		await(t, "all servers to know all replicas", func() error {
			shards, err := rdb.Do(t.Context(), "CLUSTER", "SLOTS").Slice()
			if slices.ContainsFunc(shards, func(s any) bool { return len(s.([]any)) < 4 }) { // first and last slot, master, replica
				err = fmt.Errorf("%v", shards)
			}
			return err
		})
	}
	return masters, replicas
}

// Addrs returns the host:port of all masters.
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
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: m.Addrs(), ReadTimeout: answerTimeout})
	closeAfter(t, c)
	return c
}

// await waits until condition returns nil, and fails the test after formTimeout.
func await(t testing.TB, what string, condition func() error) {
	t.Helper()
	if err := until(what, condition); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}

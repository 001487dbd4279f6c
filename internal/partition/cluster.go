package partition

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wakebell/wakebell/internal/redistest"
)

const clusterSlots = 16384

// Pair is a master of a Cluster and its replica. They change places in a failover.
type Pair struct{ Master, Replica *Server }

// Cluster runs a Redis Cluster with a master on each of the hosts, three at least, and its
// replica on the next one. A replica takes over from a master that is silent for
// nodeTimeout.
func Cluster(t testing.TB, n *Network, hosts []string, nodeTimeout time.Duration, args ...string) (pairs []*Pair) {
	t.Helper()
	args = append([]string{
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
		"--cluster-replica-validity-factor", "0", "--repl-ping-replica-period", "1", // CLUSTER SLOTS lists no replica before it has received something
	}, args...)
	var all []*Server
	for i, host := range hosts {
		p := &Pair{memberOn(t, n, host, args), memberOn(t, n, hosts[(i+1)%len(hosts)], args)}
		do(t, p.Master, "CLUSTER", "ADDSLOTSRANGE", i*clusterSlots/len(hosts), (i+1)*clusterSlots/len(hosts)-1)
		do(t, p.Master, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		pairs = append(pairs, p)
		all = append(all, p.Master, p.Replica)
	}
	for _, s := range all[1:] {
		do(t, all[0], "CLUSTER", "MEET", "127.0.0.1", s.Port.Port, s.bus.Port)
	}
	for _, s := range all {
		await(t, "the members to know each other", func() bool {
			return s.ClusterInfo(t, "cluster_known_nodes") == strconv.Itoa(len(all))
		})
	}
	for _, p := range pairs {
		id := p.Master.RDB.Do(t.Context(), "CLUSTER", "MYID").Val()
		await(t, "a replica to know its master", func() bool {
			return p.Replica.RDB.Do(t.Context(), "CLUSTER", "REPLICATE", id).Err() == nil
		})
	}
	for _, s := range all {
		await(t, "the Cluster to form", func() bool { return formed(t, s, len(pairs)) })
	}
	return pairs
}

// memberOn starts a member of a Cluster that knows no other.
func memberOn(t testing.TB, n *Network, host string, args []string) *Server {
	t.Helper()
	own := redistest.Address(t)
	_, ownPort, err := net.SplitHostPort(own)
	if err != nil {
		t.Fatalf("partition: %v", err)
	}
	data, bus := n.Listen(t, host), n.Listen(t, host)
	s := startAt(t, data, host, append([]string{
		"--cluster-enabled", "yes", "--cluster-port", ownPort, "--cluster-announce-ip", "127.0.0.1",
		"--cluster-announce-port", data.Port, "--cluster-announce-bus-port", bus.Port,
	}, args...)...)
	bus.To(own)
	s.bus = bus
	return s
}

// formed reports whether a member knows all slots, and that each master has a replica that
// can be read.
func formed(t testing.TB, s *Server, masters int) bool {
	t.Helper()
	if s.ClusterInfo(t, "cluster_state") != "ok" {
		return false
	}
	slots, err := s.RDB.Do(t.Context(), "CLUSTER", "SLOTS").Slice()
	return err == nil && len(slots) == masters && !slices.ContainsFunc(slots, func(part any) bool {
		return len(part.([]any)) != 4 // first and last slot, master, replica
	})
}

func do(t testing.TB, s *Server, command ...any) {
	t.Helper()
	if err := s.RDB.Do(t.Context(), command...).Err(); err != nil {
		t.Fatalf("partition: %v on %s: %v", command, s.Host, err)
	}
}

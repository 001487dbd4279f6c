package partition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/redistest"
)

const (
	waitLimit = time.Minute
	waitTick  = 20 * time.Millisecond
)

// Server is a redis-server on a host of a network.
type Server struct {
	*redistest.Server
	Host string
	Port *Port         // where other processes reach it, also those of its host
	RDB  *redis.Client // of the test, which no cut affects

	bus *Port // of a member of a Cluster
}

// startOn starts a redis-server on a host. It announces its port of the network.
func startOn(t testing.TB, n *Network, host string, args ...string) *Server {
	t.Helper()
	return startAt(t, n.Listen(t, host), host, args...)
}

// startAt is startOn with a port of the network.
func startAt(t testing.TB, port *Port, host string, args ...string) *Server {
	t.Helper()
	s := &Server{Host: host, Port: port}
	s.Server = redistest.Start(t, append([]string{
		"--bind-source-addr", host, "--repl-diskless-sync-delay", "0",
		"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", s.Port.Port,
	}, args...)...)
	s.Port.To(s.Addr)
	s.RDB = s.Client(t, func(o *redis.Options) { o.ReadTimeout = waitLimit })
	return s
}

// Info returns a value of INFO; empty without an answer.
func (s *Server) Info(t testing.TB, section, name string) string {
	t.Helper()
	return valueOf(s.RDB.Info(t.Context(), section).Val(), name)
}

// ClusterInfo returns a value of CLUSTER INFO; empty without an answer.
func (s *Server) ClusterInfo(t testing.TB, name string) string {
	t.Helper()
	return valueOf(s.RDB.ClusterInfo(t.Context()).Val(), name)
}

func valueOf(text, name string) string {
	_, value, _ := strings.Cut(text, name+":")
	value, _, _ = strings.Cut(value, "\r\n")
	return value
}

// Offset returns how much of the replication stream a server has written or received.
func (s *Server) Offset(t testing.TB) int {
	t.Helper()
	n, _ := strconv.Atoi(s.Info(t, "replication", "master_repl_offset")) // of a replica too
	return n
}

// Watched is a master with replicas, one on each host, and Sentinels on the first hosts.
type Watched struct {
	Servers   []*Server // by host; the first is the initial master
	Sentinels []*Server
}

// Addrs returns where processes reach the Sentinels.
func (w *Watched) Addrs() (addrs []string) {
	for _, s := range w.Sentinels {
		addrs = append(addrs, s.Port.Addr)
	}
	return addrs
}

// Sentinel runs a redis-server on each host and a Sentinel on each of the first three. Two
// Sentinels fail over from a master that is silent for downAfter.
func Sentinel(t testing.TB, n *Network, hosts []string, downAfter time.Duration, args ...string) *Watched {
	t.Helper()
	w := &Watched{}
	for i, host := range hosts {
		own := args
		if i > 0 {
			own = append([]string{"--replicaof", "127.0.0.1 " + w.Servers[0].Port.Port}, args...)
		}
		w.Servers = append(w.Servers, startOn(t, n, host, own...))
	}
	for _, s := range w.Servers[1:] {
		await(t, "a replica to follow", func() bool { return s.Info(t, "replication", "master_link_status") == "up" })
	}
	for _, host := range hosts[:3] {
		port := n.Listen(t, host)
		s := &Server{Host: host, Port: port, Server: redistest.StartSentinel(t, w.Servers[0].Port.Addr, 2,
			"bind-source-addr "+host, "sentinel announce-ip 127.0.0.1", "sentinel announce-port "+port.Port,
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", redistest.MasterName, downAfter.Milliseconds()),
			"sentinel failover-timeout "+redistest.MasterName+" 6000")}
		port.To(s.Addr)
		s.RDB = s.Client(t, func(o *redis.Options) { o.Protocol, o.DisableIdentity = 2, true })
		w.Sentinels = append(w.Sentinels, s)
	}
	for _, s := range w.Sentinels {
		await(t, "the Sentinels to know all", func() bool {
			text := s.RDB.Do(t.Context(), "INFO", "sentinel").String()
			return strings.Contains(text, fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=3", w.Servers[0].Port.Addr, len(hosts)-1))
		})
	}
	return w
}

// Master returns the server that a Sentinel takes for the master; nil without an answer.
func (w *Watched) Master(t testing.TB, sentinel *Server) *Server {
	t.Helper()
	at, err := sentinel.RDB.Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", redistest.MasterName).StringSlice()
	if err != nil || len(at) < 2 {
		return nil
	}
	for _, s := range w.Servers {
		if s.Port.Port == at[1] {
			return s
		}
	}
	return nil
}

// Outdated reports whether a Sentinel is about to fail over, still has another server for a
// master, or does not know.
func (s *Server) Outdated(t testing.TB) bool {
	t.Helper()
	asked := redis.NewSentinelClient(s.RDB.Options())
	defer asked.Close() //nolint:errcheck // it has answered
	replicas, err := asked.Replicas(t.Context(), redistest.MasterName).Result()
	master, failed := asked.Master(t.Context(), redistest.MasterName).Result()
	return err != nil || failed != nil || master["flags"] != "master" || slices.ContainsFunc(replicas, func(r map[string]string) bool {
		return r["role-reported"] != "slave" || r["flags"] != "slave"
	})
}

// await waits until a condition is true, and fails the test after a minute.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(waitLimit)
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("partition: waited %v for %s", waitLimit, what)
		}
	}
}

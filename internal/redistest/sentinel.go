package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name of the master in the Sentinel of [Sentinel].
const MasterName = "mymaster"

// Watched is a master with a replica and a Sentinel. The Sentinel fails over some
// seconds after the master's end; a master that stalls briefly stays the master.
type Watched struct {
	// Master and Replica are named by their initial roles; a failover exchanges them.
	Master, Replica *Server
	// Sentinel is the redis-server in Sentinel mode. Failover clients connect to its
	// Addr; its Client is for Sentinel commands.
	Sentinel *Server
}

// Sentinel runs a master, a replica and a Sentinel until the end of the test, and
// waits until a failover is possible. Args are options of master and replica, as in
// [Start].
func Sentinel(t testing.TB, args ...string) *Watched {
	t.Helper()
	w := &Watched{Master: Start(t, args...)}
	w.Replica = Start(t, append([]string{"--replicaof", "127.0.0.1 " + fmt.Sprint(w.Master.port), "--repl-diskless-sync-delay", "0"}, args...)...)
	awaitReplica(t, w.Replica.Client(t))
	w.Sentinel = startSentinel(t, w.Master)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: w.Sentinel.Addr})
	closeAfter(t, sentinel)
	await(t, "the Sentinel to know the replica", func() error {
		known, err := sentinel.Replicas(t.Context(), MasterName).Result()
		if err == nil && (len(known) != 1 || known[0]["master-link-status"] != "ok") {
			err = fmt.Errorf("replicas: %v", known)
		}
		return err
	})
	return w
}

// awaitReplica waits until a replica is synchronized with its master.
func awaitReplica(t testing.TB, replica *redis.Client) {
	t.Helper()
	await(t, "the replica to follow", func() error {
		info, err := replica.InfoMap(t.Context(), "replication").Result()
		if err == nil && info["Replication"]["master_link_status"] != "up" {
			err = fmt.Errorf("%v", info)
		}
		return err
	})
}

// startSentinel starts a Sentinel for a master on this machine.
func startSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	return StartSentinel(t, master.Addr, 1,
		"sentinel down-after-milliseconds "+MasterName+" 4000", "sentinel failover-timeout "+MasterName+" 5000")
}

// StartSentinel runs a Sentinel that watches the master at an address until the end of the
// test. Lines are added to the configuration file that it requires, and in which it stores
// its state.
func StartSentinel(t testing.TB, master string, quorum int, lines ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		t.Fatalf("redistest: address of the master: %v", err)
	}
	return startWith(t, dir, func(own int) ([]string, error) {
		text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nsentinel monitor %s %s %s %d\n%s\n",
			own, dir, MasterName, host, port, quorum, strings.Join(lines, "\n"))
		return []string{file, "--sentinel"}, os.WriteFile(file, []byte(text), 0o600)
	})
}

// Client connects to the current master until the end of the test. The opts change the
// client's options.
func (w *Watched) Client(t testing.TB, opts ...func(*redis.FailoverOptions)) *redis.Client {
	t.Helper()
	o := &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: []string{w.Sentinel.Addr}, ReadTimeout: answerTimeout}
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewFailoverClient(o)
	closeAfter(t, c)
	return c
}

package redistest

import (
	"fmt"
	"os"
	"path/filepath"
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

// startSentinel starts a Sentinel with the configuration file that it requires, and in
// which it stores its state.
func startSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	return startWith(t, dir, func(port int) ([]string, error) {
		text := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %s
sentinel monitor %s 127.0.0.1 %d 1
sentinel down-after-milliseconds %[3]s 4000
sentinel failover-timeout %[3]s 5000
`, port, dir, MasterName, master.port)
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

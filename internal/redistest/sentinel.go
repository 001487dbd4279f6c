package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the Sentinel of [Sentinel] calls its master.
const MasterName = "mymaster"

// Watched is a master with a replica, watched by a Sentinel, which alone
// decides to fail over: some seconds after the master's end, so that one that
// stalls for a moment is not taken for dead.
type Watched struct {
	// Master and Replica are so at the start; a failover exchanges them.
	Master, Replica *Server
	// Sentinel is the redis-server in Sentinel mode. Its Addr is for clients
	// that ask it for the master; its Client is for commands of Sentinel.
	Sentinel *Server
}

// Sentinel runs a master, a replica and a Sentinel until the end of the test,
// and waits until a failover would work. Args are options of master and
// replica, as of [Start].
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

// awaitReplica waits until a replica has its master's data and follows it.
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

// startSentinel writes the file that a Sentinel insists on, and keeps its state
// in.
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

// Client connects to whatever server is the master, until the end of the test.
// The opts change the client's options before it is made.
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

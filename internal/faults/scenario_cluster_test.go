package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
)

const (
	electAfter    = 2 * time.Second // a replica takes over from a master that is silent for that long
	sharded       = "sharded"       // the topic with shards, beside the one without
	clusterShards = 4
	// resumeWithin is the longest time from the election of a master to deliveries of its
	// topics. The promise is 3 s; the rest is for a machine that stalls.
	resumeWithin = 8 * time.Second
)

// cluster injects faults into a Redis Cluster of three masters and three replicas: a
// master is killed or suspended, a replica takes over by hand, a shard restarts, and
// slots move to another master.
func cluster(w *world) {
	w.watch(redistest.Start(w.T).Client(w.T, patient)) // the machine
	c := newClusterWorld(w)
	cfg := w.config()
	cfg.Cluster, cfg.Shards = c.addrs, map[string]int{sharded: clusterShards}
	w.start(3, cfg)
	l := w.usual()
	l.topics = []string{topic, sharded}
	l.connect = func(string) redis.UniversalClient { return c.client() }
	end := w.begin(l)
	strikes := []func(*shard){c.killMaster, c.failOver, c.moveSlot, c.restart, c.partition, c.stall}
	w.rng.Shuffle(len(strikes), func(i, j int) { strikes[i], strikes[j] = strikes[j], strikes[i] })
	for _, strike := range strikes {
		w.pause(between(w.rng, 300*time.Millisecond, time.Second))
		s := c.shards[w.rng.IntN(len(c.shards))]
		w.away(func() {
			strike(s)
			c.resumed()
			c.healed()
		})
	}
	w.pause(time.Second)
	end()
	w.settled(settleLimit)
	report.Note("cluster", "deliveries of all topics continued %v after the strikes", c.took)
}

// shard is a master with its replica; they change places.
type shard struct{ master, replica *redistest.Server }

// clusterWorld is the Cluster of a round.
type clusterWorld struct {
	*world
	addrs   []string
	shards  []*shard
	clients map[*redistest.Server]*redis.Client
	took    []time.Duration
}

func newClusterWorld(w *world) *clusterWorld {
	w.Helper()
	// Without a sync, a server that is killed loses nothing: the machine does not fail.
	masters, replicas := redistest.ReplicatedCluster(w.T, electAfter,
		"--appendonly", "yes", "--appendfsync", "no", "--cluster-require-full-coverage", "no")
	c := &clusterWorld{world: w, addrs: masters.Addrs(), clients: map[*redistest.Server]*redis.Client{}}
	for i := range masters {
		c.shards = append(c.shards, &shard{masters[i], replicas[i]})
		for _, s := range []*redistest.Server{masters[i], replicas[i]} {
			c.clients[s] = s.Client(w.T, patient)
		}
	}
	w.divided, w.rdb = true, masters.Client(w.T)
	return c
}

// client returns a client with the timeouts that users have.
func (c *clusterWorld) client() *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addrs})
	c.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// killMaster kills a master. Its replica takes over.
func (c *clusterWorld) killMaster(s *shard) {
	loss := c.replicated(s)
	s.master.Kill()
	c.lost(loss)
	c.promoted(s)
	s.replica.Restart(c.T)
}

// failOver makes the replica the master by hand, which loses nothing.
func (c *clusterWorld) failOver(s *shard) {
	require.NoError(c, c.clients[s.replica].Do(c.Context(), "CLUSTER", "FAILOVER").Err())
	c.promoted(s)
}

// partition suspends a master for so long that its replica takes over. When it continues
// it may answer commands until it knows: those writes are lost.
func (c *clusterWorld) partition(s *shard) {
	loss := c.replicated(s)
	s.master.Pause()
	c.promoted(s)
	c.resumed()
	c.pause(between(c.rng, 0, time.Second))
	s.replica.Resume()
	c.eventually("the old master is a replica", func() bool { return c.info(s.replica, "replication", "role") == "slave" })
	c.lost(loss)
}

// stall suspends a master for less than that.
func (c *clusterWorld) stall(s *shard) {
	s.master.Pause()
	c.pause(between(c.rng, electAfter/20, electAfter/2))
	s.master.Resume()
}

// restart kills both servers of a shard and starts them again.
func (c *clusterWorld) restart(s *shard) {
	s.replica.Kill()
	s.master.Kill()
	c.pause(between(c.rng, 0, time.Second))
	s.master.Restart(c.T)
	s.replica.Restart(c.T)
}

// moveSlot moves the slot of a topic, or of a shard of one, to another master.
func (c *clusterWorld) moveSlot(*shard) {
	names := append(sharding.Names(sharded, clusterShards), topic)
	name := names[c.rng.IntN(len(names))]
	slot, err := c.rdb.ClusterKeySlot(c.Context(), name).Result()
	require.NoError(c, err)
	from := slices.IndexFunc(c.shards, func(s *shard) bool { // the others answer MOVED
		return c.clients[s.master].Exists(c.Context(), name).Err() == nil
	})
	require.GreaterOrEqual(c, from, 0, "no master has %s", name)
	to := c.shards[(from+1+c.rng.IntN(len(c.shards)-1))%len(c.shards)]
	redistest.MoveSlot(c.T, int(slot), c.shards[from].master, to.master, func() {
		c.pause(between(c.rng, 0, 30*time.Millisecond))
	})
}

// promoted waits until the replica of a shard is its master, and notes that.
func (c *clusterWorld) promoted(s *shard) {
	c.eventually("a replica takes over", func() bool { return c.info(s.replica, "replication", "role") == "master" })
	s.master, s.replica = s.replica, s.master
	c.eventually("the new master serves", func() bool { return c.info(s.master, "cluster", "cluster_state") == "ok" })
}

// replicated returns an instant before which all writes of a shard have reached its
// replica.
func (c *clusterWorld) replicated(s *shard) time.Time {
	at := time.Now()
	written := c.offset(s.master, "master_repl_offset")
	c.eventually("the replica has all writes", func() bool { return c.offset(s.replica, "slave_repl_offset") >= written })
	return at
}

func (c *clusterWorld) offset(s *redistest.Server, name string) int {
	n, err := strconv.Atoi(c.info(s, "replication", name))
	require.NoError(c, err)
	return n
}

// lost records that writes since an instant may be lost.
func (c *clusterWorld) lost(since time.Time) {
	c.deliveries.RecordFault(Fault{Kind: DataLoss, From: since, To: time.Now()})
}

// info returns a value of INFO or, for the section cluster, of CLUSTER INFO; empty
// without an answer.
func (c *clusterWorld) info(s *redistest.Server, section, name string) string {
	text := ""
	if section == "cluster" {
		text = c.clients[s].ClusterInfo(c.Context()).Val()
	} else {
		text = c.clients[s].Info(c.Context(), section).Val()
	}
	_, value, _ := strings.Cut(text, name+":")
	value, _, _ = strings.Cut(value, "\r\n")
	return value
}

// resumed waits until nodes deliver the timers of all topics.
func (c *clusterWorld) resumed() {
	began := time.Now()
	c.eventually("nodes deliver all topics", func() bool {
		return !slices.ContainsFunc(c.shards, func(s *shard) bool { return c.behind(c.clients[s.master], began) })
	})
	c.took = append(c.took, time.Since(began).Round(time.Millisecond))
	if after := time.Since(began); after > resumeWithin {
		c.Errorf("deliveries resumed after %v, want at most %v", after, resumeWithin)
	}
}

// behind reports whether a master has a timer that was due at an instant and is not
// leased. It asks no other server: one may be suspended.
func (c *clusterWorld) behind(master *redis.Client, at time.Time) bool {
	return slices.ContainsFunc(master.Keys(c.Context(), timelines+"*").Val(), func(timeline string) bool {
		first := master.ZRangeWithScores(c.Context(), timeline, 0, 0).Val()
		return len(first) > 0 && first[0].Score < float64(at.UnixMicro())/1e6
	})
}

// healed waits until all masters have a replica.
func (c *clusterWorld) healed() {
	c.eventually("the Cluster has healed", func() bool {
		return !slices.ContainsFunc(c.shards, func(s *shard) bool {
			return c.info(s.master, "cluster", "cluster_state") != "ok" || c.info(s.replica, "replication", "master_link_status") != "up"
		})
	})
}

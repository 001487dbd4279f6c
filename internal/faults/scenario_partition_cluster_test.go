package faults

import (
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/partition"
)

// failoverLimit is when a failover by hand has failed.
const failoverLimit = 6 * time.Second

// partitionCluster parts a host with a master, and with the replica of another one, from
// the two others.
func partitionCluster(w *world) {
	d := divide(w, 3)
	pairs := partition.Cluster(w.T, d.network, d.hosts, electAfter, "--cluster-require-full-coverage", "no")
	var addrs []string
	for _, p := range pairs {
		addrs = append(addrs, p.Master.Port.Addr)
	}
	d.connect = func(host string) NodeConfig {
		cfg := d.config()
		cfg.Cluster, cfg.Shards, cfg.Host = addrs, map[string]int{sharded: clusterShards}, host
		return cfg
	}
	d.masters = func() (all []*partition.Server) {
		for _, p := range pairs {
			if p.Replica.Info(w.T, "replication", "role") == "master" {
				all = append(all, p.Replica)
			} else {
				all = append(all, p.Master)
			}
		}
		return all
	}
	w.divided, w.rdb = true, NodeConfig{Cluster: addrs}.client()
	w.Cleanup(func() { _ = w.rdb.Close() })
	d.settle = func() {} // an election needs the votes of masters, which know of the heal
	d.confirm, w.deliveries.KeptFrom = []int{0, 1}, 1
	end := d.staff([]string{topic, sharded})
	w.pause(time.Second)
	var cuts []string
	lengths := d.lengths()
	for i, how := range d.ways() {
		p := pairs[w.rng.IntN(len(pairs))]
		d.cut(p.Master, func() *partition.Server { return p.Replica }, nil, how, lengths[i])
		cuts = append(cuts, fmt.Sprintf("%s for %v", how, lengths[i]))
		if p.Replica.Info(w.T, "replication", "role") == "master" { // each host has a master again
			p.Master, p.Replica = p.Replica, p.Master
			d.away(func() { d.giveBack(p) })
		}
	}
	end()
	w.settled(settleLimit)
	d.note("partition-cluster", cuts)
	report.Note("partition-cluster", "round %d: after failovers by hand, what was due was delivered within %v", d.round, d.given)
}

// giveBack makes the replica of a pair its master, which loses nothing.
func (d *hostGroup) giveBack(p *partition.Pair) {
	d.Helper()
	began := time.Now()
	var asked time.Time
	d.eventually("the first master is the master again", func() bool {
		// It may be early, or time out; asked again meanwhile, it would begin anew.
		if time.Since(asked) > failoverLimit && p.Replica.RDB.Do(d.Context(), "CLUSTER", "FAILOVER").Err() == nil {
			asked = time.Now()
		}
		return p.Replica.Info(d.T, "replication", "role") == "master"
	})
	p.Master, p.Replica = p.Replica, p.Master
	d.eventually("the other follows", func() bool { return p.Replica.Info(d.T, "replication", "master_link_status") == "up" })
	d.given = append(d.given, d.resume(began))
}

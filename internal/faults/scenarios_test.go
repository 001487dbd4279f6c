package faults

import (
	"time"

	"github.com/wakebell/wakebell/internal/faults/gatefaults"
)

// scenarios are run by the suite too, the longest first.
var scenarios = []scenario{
	{"beats", time.Second, beats},
	{"prefixes", time.Second, prefixes},
	{"boundaries", 300 * time.Millisecond, boundaries},
	{"cluster", time.Second, cluster},
	{"failover", time.Second, failover},
	{"queue", time.Second, queues},
	{"joint", time.Second, joint},
	{"keys", time.Second, keys},
	{"hand-over", time.Second, handOver},
	{"gates", gatefaults.Lease, gates},
	{"reminders", time.Second, reminders},
	{"kill", time.Second, kill},
	{"remote", 2 * time.Second, remoteAccess},
	{"power-cut", time.Second, powerCut},
	{"clocks", 2 * time.Second, clocks},
	{"stalls", time.Second, stalled},
	{"restart", time.Second, restart},
	{"embedded", time.Second, embeddedStore},
	{"slow", time.Second, network(0.5, 5*time.Second, rough)},
	{"streams", time.Second, streams},
	{"poison", 2 * time.Second, poison},
	{"memory", time.Second, full},
	{"races", 5 * time.Second, races},
}

// simulated are scenarios whose faults the simulation has too, in many more combinations. They
// run with -faults.all, or by their names.
var simulated = []scenario{
	{"reshard", time.Second, reshard},
	{"drain", 4 * time.Second, drain},
	{"stop", time.Second, stop},
	{"flush", time.Second, flush},
	{"loss", time.Second, network(0.05, 6*time.Second, loss)},
	{"late", time.Second, network(0.1, 5*time.Second, late)},
}

// apart are scenarios that only -faults.only runs: partitions take a minute or more, nearly all
// of it waiting, and the parts of joins keep the machine busy.
var apart = []scenario{
	{"joins", time.Second, joins},
	{"partition", time.Second, partitionAlone},
	{"partition-guarded", time.Second, partitionGuarded},
	{"partition-replica", time.Second, partitionReplica},
	{"partition-cluster", time.Second, partitionCluster},
}

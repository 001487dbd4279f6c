package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/partition"
	"github.com/wakebell/wakebell/internal/redistest"
)

const (
	shortestCut = 2 * time.Second
	longestCut  = 6 * electAfter
	// bothRun is for how long a handler may run beside the next one of its timer, when
	// there are not two masters: its node has to notice the end of its lease.
	bothRun = 300 * time.Millisecond
)

// hostGroup is hosts that are parted, while the processes on each of them go on: a node,
// clients, and clients that wait for replicas. Those beside a master that is cut off are
// served by it.
type hostGroup struct {
	*world
	network *partition.Network
	hosts   []string
	connect func(host string) NodeConfig // how processes on a host reach Redis
	masters func() []*partition.Server   // that most of the hosts have
	settle  func()                       // waits until all agree on the masters
	on      map[string]string            // the host of each node and client
	confirm []int                        // by how many replicas the timers of each client of a host

	elected, served  []time.Duration // after the cut began, and after the election
	resumed, demoted []time.Duration // after the cut was healed
	given            []time.Duration // after a failover by hand began
}

// way is a kind of cut.
type way string

const (
	bothWays way = "both ways"
	inwards  way = "to the master"
	outwards way = "from the master"
)

// divide makes a hostGroup without servers.
func divide(w *world, hosts int) *hostGroup {
	w.Helper()
	d := &hostGroup{world: w, network: partition.NewNetwork(w.T), on: map[string]string{}}
	for i := range hosts {
		d.hosts = append(d.hosts, partition.Host(1+i))
	}
	c, err := partition.Dialer(d.hosts[0])(w.Context(), "tcp", d.network.Listen(w.T, d.hosts[0]).Addr)
	require.NoError(w, err, "partitions need the addresses 127.0.0.0/8 of Linux")
	require.NoError(w, c.Close())
	w.watch(redistest.Start(w.T).Client(w.T, patient)) // the machine
	w.deliveries.MaxOverlap = bothRun
	return d
}

// staff starts a node on each host, and returns how clients are started and stopped.
func (d *hostGroup) staff(topics []string) (end func()) {
	d.Helper()
	for _, host := range d.hosts {
		d.on[d.fleet.Next()] = host
		cfg := d.connect(host)
		cfg.MaxConcurrent = 20
		d.nodes = append(d.nodes, d.fleet.Start(cfg))
	}
	for _, n := range d.nodes {
		n.Ready()
	}
	ctx, stop := context.WithCancel(d.Context())
	var running sync.WaitGroup
	for i, host := range d.hosts {
		for kind, replicas := range d.confirm {
			rdb := d.connect(host).client()
			d.Cleanup(func() { _ = rdb.Close() })
			s := &scheduler{
				pace: usualPace(), calls: d.deliveries, name: fmt.Sprintf("client-%d", len(d.confirm)*i+kind+1),
				rng: rand.New(rand.NewPCG(d.rng.Uint64(), d.rng.Uint64())), client: newClient(d.T, rdb),
			}
			s.batch, s.topics, s.replicas = 6, topics, replicas
			d.on[s.name] = host
			running.Go(func() { s.run(ctx) })
		}
	}
	end = sync.OnceFunc(func() { stop(); running.Wait() })
	d.Cleanup(end)
	return end
}

// cut parts the hosts of a master from the others for a while. Within waits until the
// others have a master again, or until it is clear that they have none before the end.
func (d *hostGroup) cut(old *partition.Server, replica func() *partition.Server, beside []string, how way, lasts time.Duration) {
	d.Helper()
	here := append([]string{old.Host}, beside...)
	there := slices.DeleteFunc(slices.Clone(d.hosts), func(h string) bool { return slices.Contains(here, h) })
	written := time.Now()
	offset := old.Offset(d.T)
	d.eventually("a replica has all writes", func() bool { return replica().Offset(d.T) >= offset })
	began := time.Now()
	if how != outwards {
		d.network.Block(there, here)
	}
	if how != inwards {
		d.network.Block(here, there)
	}
	d.tried()
	parted := time.Now()
	for time.Since(began) < lasts {
		if next := replica(); next.Info(d.T, "replication", "role") == "master" {
			d.elected = append(d.elected, time.Since(began).Round(time.Millisecond))
			d.served = append(d.served, d.resume(time.Now()))
			break
		}
		d.pause(settleTick)
	}
	d.pause(max(0, lasts-time.Since(began)))
	healed := time.Now()
	d.network.Heal()
	d.resumed = append(d.resumed, d.resume(healed))
	if d.divided {
		there = d.hosts // those with the old master are cut off from the others
	}
	d.outage(there, began)
	// Before it knows of the election, the old master serves those that still ask it.
	d.eventually("one of the two is a master, and the other follows it", func() bool {
		return old.Info(d.T, "replication", "role") == "slave" && old.Info(d.T, "replication", "master_link_status") == "up" ||
			slices.Contains(d.masters(), old) && replica().Info(d.T, "replication", "role") == "slave" && replica().Info(d.T, "replication", "master_link_status") == "up"
	})
	followed := time.Since(healed).Round(time.Millisecond)
	d.settle() // an election that had begun ends after the cut
	if old.Info(d.T, "replication", "role") == "master" {
		return
	}
	d.demoted = append(d.demoted, followed)
	d.deliveries.RecordFault(Fault{Kind: DataLoss, From: written, To: parted})
	for name, host := range d.on {
		// A command of the others that waited in the network runs on the old master as well.
		d.deliveries.RecordFault(Fault{Kind: DataLoss, Target: name, From: d.lostFrom(host, here, healed, began), To: time.Now()})
	}
	d.outage(d.hosts, healed)
}

// lostFrom returns since when the writes of a host may have been to the old master.
func (d *hostGroup) lostFrom(host string, here []string, healed, began time.Time) time.Time {
	if slices.Contains(here, host) {
		return began
	}
	return healed
}

// outage records that Redis was away from processes until now.
func (d *hostGroup) outage(hosts []string, from time.Time) {
	for name, host := range d.on {
		if slices.Contains(hosts, host) {
			d.deliveries.RecordFault(Fault{Kind: Outage, Target: name, From: from, To: time.Now()})
		}
	}
}

// resume waits until nodes deliver what is due at an instant, and returns how long it took.
func (d *hostGroup) resume(at time.Time) time.Duration {
	d.Helper()
	d.eventually("nodes deliver what is due", func() bool {
		masters := d.masters()
		return len(masters) > 0 && !slices.ContainsFunc(masters, func(s *partition.Server) bool { return behind(d.Context(), s.RDB, at) })
	})
	return time.Since(at).Round(time.Millisecond)
}

// behind reports whether a server has a timer that was due at an instant and is not leased.
func behind(ctx context.Context, rdb *redis.Client, at time.Time) bool {
	return slices.ContainsFunc(rdb.Keys(ctx, timelines+"*").Val(), func(timeline string) bool {
		first := rdb.ZRangeWithScores(ctx, timeline, 0, 0).Val()
		return len(first) > 0 && first[0].Score < float64(at.UnixMicro())/1e6
	})
}

// lengths returns the durations of cuts: one that is too short for an election, and two that
// are not.
func (d *hostGroup) lengths() []time.Duration {
	middle := (shortestCut + longestCut) / 2
	return []time.Duration{
		shortestCut, between(d.rng, 2*electAfter, middle).Round(time.Millisecond), between(d.rng, middle, longestCut).Round(time.Millisecond),
	}
}

// ways returns the ways of cuts in a random order.
func (d *hostGroup) ways() []way {
	all := []way{bothWays, inwards, outwards}
	d.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// note reports how long it took.
func (d *hostGroup) note(scenario string, cuts []string) {
	report.Note(scenario, "round %d: cuts %s; a replica was promoted %v after they began, and delivered what was due %v later; what was due at the heals was delivered %v later; the old master followed %v after them",
		d.round, strings.Join(cuts, ", "), d.elected, d.served, d.resumed, d.demoted)
}

// partitionAlone parts the host of a master from the other three.
func partitionAlone(w *world) { partitionSentinel(w, "partition", false) }

// partitionGuarded is partitionAlone with a master that refuses writes without a replica.
func partitionGuarded(w *world) {
	partitionSentinel(w, "partition-guarded", false, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "2")
}

// partitionReplica parts a master together with a replica, which confirms what is lost.
func partitionReplica(w *world) { partitionSentinel(w, "partition-replica", true) }

// partitionSentinel parts the host of a master from the others, or two hosts if a replica is
// to be on its side. Sentinels are on three of four, never two of them with the master.
func partitionSentinel(w *world, name string, replicaBeside bool, args ...string) {
	d := divide(w, 4)
	set := partition.Sentinel(w.T, d.network, d.hosts, electAfter, args...)
	d.connect = func(host string) NodeConfig {
		cfg := d.config()
		cfg.Sentinels, cfg.Master, cfg.Host = set.Addrs(), redistest.MasterName, host
		return cfg
	}
	// The view of the Sentinels that are not beside the old master.
	var apart []string
	master := func() *partition.Server {
		for _, s := range set.Sentinels {
			if slices.Contains(apart, s.Host) {
				continue
			}
			if m := set.Master(w.T, s); m != nil {
				return m
			}
		}
		return nil
	}
	d.masters = func() []*partition.Server {
		if m := master(); m != nil && m.Info(w.T, "replication", "role") == "master" {
			return []*partition.Server{m}
		}
		return nil
	}
	d.settle = func() { d.calm(set, master) }
	d.confirm = []int{0, 1, len(d.hosts) - 1}
	w.deliveries.KeptFrom = len(d.hosts) - 1
	end := d.staff(nil)
	w.pause(time.Second)
	var cuts []string
	lengths := d.lengths()
	for i, how := range d.ways() {
		old := master()
		apart = []string{old.Host}
		var beside []string
		if replicaBeside {
			beside = []string{d.besides(set, old)}
			apart = append(apart, beside...)
		}
		replica := func() *partition.Server { // the one that is promoted, or may be
			if m := master(); m != nil && m != old {
				return m
			}
			return d.last(set.Servers, old, beside)
		}
		d.cut(old, replica, beside, how, lengths[i])
		cuts = append(cuts, fmt.Sprintf("%s for %v", how, lengths[i]))
	}
	end()
	w.rdb = master().RDB
	w.settled(settleLimit)
	d.note(name, cuts)
}

// besides returns a host for the side of a master, so that this side has one Sentinel.
func (d *hostGroup) besides(set *partition.Watched, old *partition.Server) string {
	free := d.hosts[len(d.hosts)-1]
	if old.Host == free {
		return set.Sentinels[d.rng.IntN(len(set.Sentinels))].Host
	}
	return free
}

// last returns the replica that has received least, of those that are not beside the master.
func (d *hostGroup) last(servers []*partition.Server, old *partition.Server, beside []string) (last *partition.Server) {
	for _, s := range servers {
		if s != old && !slices.Contains(beside, s.Host) && (last == nil || s.Offset(d.T) < last.Offset(d.T)) {
			last = s
		}
	}
	return last
}

// calm waits until all follow one master, and all Sentinels know it. One that still takes a
// replica for a master would make it follow the old one when it is elected in the next cut.
func (d *hostGroup) calm(set *partition.Watched, master func() *partition.Server) {
	d.Helper()
	d.eventually("all follow the master", func() bool {
		m := master()
		return m != nil && !slices.ContainsFunc(set.Sentinels, func(s *partition.Server) bool { return set.Master(d.T, s) != m }) &&
			!slices.ContainsFunc(set.Servers, func(s *partition.Server) bool {
				return s != m && s.Info(d.T, "replication", "master_link_status") != "up"
			}) && !slices.ContainsFunc(set.Sentinels, func(s *partition.Server) bool { return s.Outdated(d.T) })
	})
}

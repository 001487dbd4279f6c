package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// jointLimits are the limits of a round. The operator lowers them for a while, and raises
// them to these again. In odd rounds one timer of a key runs at a time.
func jointLimits(round int) Limits {
	return Limits{
		PerKey: 2 - round%2, MaxInFlight: 24, RateLimit: 40, RatePer: 100 * time.Millisecond, RateBurst: 40,
		KeyRate: 20, KeyPer: time.Second, KeyBurst: 10,
	}
}

// jointRound is a topic with keys and all limits on a Redis that fails over, while the
// number of its shards changes, and that moves to another Redis then.
type jointRound struct {
	*world
	set       *redistest.Watched
	sentinels []string
	target    *redis.Client // of the other Redis
	other     string        // its address
	program   string

	resharding []string // the command that changes the number of shards

	// calm is held by calls of clients, and locked while no Redis is to be called: an
	// outage would leave the outcome of a call unknown.
	calm sync.RWMutex
}

// joint does all at once what scenarios do one by one: order and limits by key, limits of
// the topic, cancels, reschedules, redrives, pauses and changes of limits, a change of the
// number of shards, a failover and a move to another Redis, while nodes are killed and
// suspended, and so are the commands that move timers.
func joint(w *world) {
	w.divided = true
	j := &jointRound{world: w, set: redistest.Sentinel(w.T), program: redistest.Program(w)}
	j.sentinels = j.set.Quorum(w.T)
	other := redistest.Start(w.T)
	j.other, j.target = other.Addr, other.Client(w.T, patient)
	source := j.set.Client(w.T, func(o *redis.FailoverOptions) { o.SentinelAddrs, o.ReadTimeout = j.sentinels, settleLimit })
	w.rdb = source
	w.watch(source)
	w.watch(j.target)
	limits := jointLimits(w.round)
	defer func() {
		limits.Places, limits.Renewed, limits.Lowered = map[string]string{}, 1, true
		for _, node := range w.fleet.nodes {
			limits.Places[node.Name] = node.Config.Redis
		}
		w.found = w.deliveries.JudgeLimits(limits)
	}()
	j.nodesOf(limits)

	ends := j.clients(source, "a", limits)
	to := 2 + w.rng.IntN(3)
	j.resharding = []string{"topics", "reshard", topic, "--shards", fmt.Sprint(to), "--redis", j.sourceURL()}
	kills := j.repeatedly(true, j.resharding...)
	ends()
	ends = j.clients(j.target, "b", Limits{}) // what the target has of it comes with the move
	kills += j.repeatedly(false, "topics", "move", topic, "--redis", j.sourceURL(), "--to", "redis://"+j.other, "--all")
	ends()
	j.end(source)
	report.Note("joint", "to %d shards and another Redis: %d kills of commands", to, kills)
}

func (j *jointRound) sourceURL() string {
	return "redis+sentinel://" + strings.Join(j.sentinels, ",") + "/" + redistest.MasterName + "?read_timeout=60s"
}

// nodesOf starts the nodes of both Redis.
func (j *jointRound) nodesOf(limits Limits) {
	j.Helper()
	cfg := j.config()
	cfg.MaxConcurrent, cfg.Limits = 40, limits
	cfg.Sentinels, cfg.Master = j.sentinels, redistest.MasterName
	j.start(3, cfg)
	cfg.Sentinels, cfg.Master, cfg.Redis = nil, "", j.other
	j.start(2, cfg)
}

// reshardFirst is a part of the answer of a move while timers go to other shards.
const reshardFirst = "its timers are being moved to"

// repeatedly runs a command of wakebell and kills it after a while, again and again until it
// is done, while nodes are killed and suspended. It fails the master over in between, if so
// asked. It returns the number of kills.
func (j *jointRound) repeatedly(failover bool, args ...string) (kills int) {
	j.Helper()
	struck := make(chan struct{})
	var striking sync.WaitGroup
	defer striking.Wait()
	end := sync.OnceFunc(func() { close(struck) })
	defer end()
	rng := rand.New(rand.NewPCG(j.rng.Uint64(), j.rng.Uint64()))
	striking.Go(func() {
		for {
			select {
			case <-struck:
				return
			default:
				j.strike(rng)
			}
		}
	})
	failAt := 1 + j.rng.IntN(3)
	for try := 0; ; try++ {
		require.Less(j, try, 100, "%v does not end", args)
		if failover && try == failAt {
			j.failOver()
			failover = false
		}
		done, killed, log := j.command(between(j.rng, 100*time.Millisecond, 3*time.Second), args...)
		switch {
		case killed:
			kills++
			j.tried()
		case done:
			if failover { // it was done before
				j.failOver()
			}
			return kills
		case args[1] == "move" && strings.Contains(log, reshardFirst):
			// A client that stood still has written where the timers were, so the change was taken
			// back: an operator does what the answer says.
			done, _, log := j.command(settleLimit, j.resharding...)
			require.True(j, done, log)
		default:
			require.Failf(j, "a command failed", "%v: %s", args, log)
		}
		j.pause(between(j.rng, 0, 100*time.Millisecond))
	}
}

// strike suspends a node for up to one and a half leases, and kills others meanwhile.
func (j *jointRound) strike(rng *rand.Rand) {
	frozen := rng.IntN(len(j.nodes))
	j.nodes[frozen].Ready()
	resume := j.nodes[frozen].Stop()
	j.tried()
	for until := time.Now().Add(j.stallFor(rng)); time.Now().Before(until); {
		i := (frozen + 1 + rng.IntN(len(j.nodes)-1)) % len(j.nodes)
		j.nodes[i].Kill()
		j.replace(i)
		j.tried()
		j.pause(between(rng, 100*time.Millisecond, 400*time.Millisecond))
	}
	resume()
	j.pause(between(rng, 100*time.Millisecond, 600*time.Millisecond))
}

// failOver kills the master when its replica has all of its writes, while no client calls:
// nothing is lost, and nodes and commands switch to the replica.
func (j *jointRound) failOver() {
	j.Helper()
	j.calm.Lock()
	defer j.calm.Unlock()
	master, replica := j.set.Master.Client(j.T, patient), j.set.Replica.Client(j.T, patient)
	j.away(func() {
		require.NoError(j, master.Do(j.Context(), "CLIENT", "PAUSE", settleLimit.Milliseconds(), "WRITE").Err())
		j.eventually("the replica has all writes", func() bool {
			of := func(c *redis.Client) string {
				info, err := c.InfoMap(j.Context(), "replication").Result()
				require.NoError(j, err)
				return info["Replication"]["master_repl_offset"]
			}
			return of(master) == of(replica)
		})
		j.set.Master.Kill()
		j.eventually("the replica is promoted", func() bool {
			return strings.Contains(replica.Info(j.Context(), "replication").Val(), "role:master")
		})
		j.eventually("clients find it", func() bool { return j.rdb.Set(j.Context(), "found", "1", time.Second).Err() == nil })
	})
}

// end waits until both Redis have no timer, and checks that nothing is left.
func (j *jointRound) end(source redis.UniversalClient) {
	j.Helper()
	ctx, cancel := context.WithTimeout(j.Context(), 2*settleLimit)
	defer cancel()
	for _, rdb := range []redis.UniversalClient{source, j.target, source} {
		j.rdb = rdb
		for j.some(ctx) {
			select {
			case <-time.After(settleTick):
			case <-ctx.Done():
				j.left(2 * settleLimit)
				return
			}
		}
	}
	j.drainAll()
	for _, rdb := range []redis.UniversalClient{source, j.target} {
		j.rdb = rdb
		j.readDead()
		j.empty()
	}
	j.redriven()
}

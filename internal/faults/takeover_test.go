//go:build !race

package faults

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/internal/sharding"
)

var (
	takeoverNodes  = flag.Int("takeover.nodes", 3, "nodes of TestTakeover")
	takeoverShards = flag.Int("takeover.shards", 4, "shards of its topic")
	takeoverRate   = flag.Int("takeover.rate", 200, "timers per second")
	takeoverKills  = flag.Int("takeover.kills", 1, "nodes to kill, one after the other")
	takeoverBound  = flag.Bool("takeover.bound", false, "fail when a takeover takes longer than promised; a busy machine does too")
)

const (
	// punctual is the lateness up to which a shard counts as served by its primary.
	punctual = 100 * time.Millisecond
	// takeoverWithin is the promise: the lease of an announcement and a second.
	takeoverWithin = division.Lease + time.Second
	// stallAllowed is what a machine that stalls may add.
	stallAllowed = 5 * time.Second
)

// The shards of a node that is killed are taken over within the lease of its announcement
// and a second, and few exchanges find nothing. A shard is taken over when its timers are
// punctual again. make takeover shows the figures and holds them to the promise; here every
// timer has to be delivered.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := &world{T: t, round: 1, rng: choices("takeover", 1), deliveries: NewDeliveryLog(2 * time.Second), divided: true}
	w.fleet = NewFleet(t, w.deliveries)
	w.redis()
	cfg := w.config()
	cfg.Shards = map[string]int{topic: *takeoverShards}
	w.start(*takeoverNodes, cfg)
	for _, err := range newClient(t, w.rdb).Reshard(t.Context(), topic, *takeoverShards) { // until nodes and clients have the number
		require.NoError(t, err)
	}
	load := &steady{world: w, due: time.Now().Add(2 * time.Second), s: &scheduler{calls: w.deliveries, name: "client-1", client: newClient(t, w.rdb)}}
	load.during(division.Lease) // the nodes find out that they compete
	var killed []time.Time
	for range *takeoverKills {
		i := w.rng.IntN(len(w.nodes))
		killed = append(killed, time.Now())
		w.nodes[i].Kill()
		w.replace(i)
		load.during(takeoverWithin + time.Second)
	}
	w.settled(settleLimit)
	var took []time.Duration
	for _, at := range killed {
		took = append(took, load.takeovers(at)...)
	}
	slices.Sort(took)
	c := w.deliveries.Counters()
	t.Logf("%d nodes, %d shards, %d timers/s, %d kills: takeover p50 %v, p99 %v, longest %v; %.2f exchanges per timer, %.2f of them empty",
		*takeoverNodes, *takeoverShards, *takeoverRate, *takeoverKills, took[len(took)/2], took[len(took)*99/100], took[len(took)-1],
		float64(c.Exchanges)/float64(max(c.Delivered, 1)), float64(c.Empty)/float64(max(c.Delivered, 1)))
	if *takeoverBound {
		require.Less(t, took[len(took)-1], takeoverWithin+stallAllowed)
	}
}

// steady schedules timers at a constant rate, a second of them in a call.
type steady struct {
	*world
	s   *scheduler
	due time.Time // of the next timer
}

func (l *steady) during(lasts time.Duration) {
	l.Helper()
	every := time.Second / time.Duration(*takeoverRate)
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		var plans []plan
		for range *takeoverRate {
			l.s.count++
			plans = append(plans, plan{id: fmt.Sprintf("client-1/%d", l.s.count), work: Work{Generation: 1}, in: time.Until(l.due)})
			l.due = l.due.Add(every)
		}
		require.True(l, l.s.try(l.Context(), plans))
		l.pause(time.Until(l.due.Add(-2 * time.Second)))
	}
}

// bucket is the span of time whose timers are looked at together: one late timer says
// little on a machine that stalls.
const bucket = 250 * time.Millisecond

// takeovers returns, for each shard, how long after an instant most of its timers were not
// yet punctual.
func (l *steady) takeovers(killed time.Time) []time.Duration {
	l.deliveries.mu.Lock()
	defer l.deliveries.mu.Unlock()
	late := make([]map[int][]time.Duration, *takeoverShards) // by shard, and by the bucket of their instants
	for i := range late {
		late[i] = map[int][]time.Duration{}
	}
	for id, t := range l.deliveries.timers {
		if len(t.Runs) == 0 {
			continue
		}
		first := slices.MinFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
		if after := first.Activation.Sub(killed); after >= 0 {
			of, n := late[sharding.ShardOf(id, "", *takeoverShards)], int(after/bucket)
			of[n] = append(of[n], first.Delivered.Sub(first.Activation))
		}
	}
	took := make([]time.Duration, *takeoverShards)
	for i, of := range late {
		for n := 0; len(of[n]) > 0; n++ {
			slices.Sort(of[n])
			if of[n][len(of[n])/2] <= punctual {
				break
			}
			took[i] = time.Duration(n+1) * bucket
		}
	}
	return took
}

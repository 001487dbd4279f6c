package actors

import (
	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/wakebelltype"
)

// describe returns the state of this node for a topic: for a shard that of all shards of
// its topic here, so that all of its pollers say the same.
func (rt *Runtime) describe(c *poller.Shared) wakebelltype.NodeState {
	n := c.Describe()
	n.Version, n.Started = rt.version, rt.started
	rt.mu.Lock()
	defer rt.mu.Unlock()
	n.Outages = rt.outages[c.Source.Shard()].Ended
	for _, other := range rt.shards[c.Logical] {
		if other != c {
			n = joinStates(n, other.Describe(), rt.outages[other.Source.Shard()].Ended)
		}
	}
	return n
}

// joinStates joins the states of two shards: sums of what the node does, and of the rest
// what says more.
func joinStates(n, more wakebelltype.NodeState, outages int64) wakebelltype.NodeState {
	if more.Role == division.Primary {
		n.Role = more.Role
	}
	if sharding.BreakerRank(more.Breaker) > sharding.BreakerRank(n.Breaker) {
		n.Breaker, n.BreakerSince, n.BreakerUntil, n.BreakerReason = more.Breaker, more.BreakerSince, more.BreakerUntil, more.BreakerReason
	}
	n.Paused = n.Paused || more.Paused
	n.Prefetch = n.Prefetch || more.Prefetch
	n.Running += more.Running
	n.Concurrency = max(n.Concurrency, more.Concurrency) // they share them
	n.Longest = sharding.JoinRuns(n.Longest, more.Longest)
	n.Restarts += more.Restarts
	n.Outages = max(n.Outages, outages)
	return n
}

package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/guard"
)

// share is the topic's share of the concurrency of a group of topics. It decides how many
// places a claim may take.
type share struct {
	place *guard.Member // nil: in no group

	shards int  // the number of shards for which it was put there; 0: not yet
	waits  bool // for a place
	tried  bool // to take places since the last event
}

// in reports whether the topic is in a group.
func (s *share) in() bool { return s.place != nil }

// enterGroup joins the group of the topic, which wakes the poller when a place is free, or
// that of its shards. It does so again when the number of shards has changed.
func (c *Core) enterGroup(shards int) {
	if shards == c.share.shards {
		return
	}
	entered := c.share.shards > 0 && c.share.in() // by this core, and not by the one before it
	c.share.shards = shards
	group, weight := c.Group, float64(c.Weight)/float64(shards)
	if group == nil && shards > 1 {
		group, weight = c.ShardGroup, 1
	}
	if entered && c.share.place.In(group) {
		c.share.place.SetWeight(weight)
		return
	}
	if entered {
		c.share.place.Leave()
		c.Guards.place, c.share.place, c.share.waits = nil, nil, false
	}
	if group == nil {
		return
	}
	if !c.Guards.place.In(group) {
		c.Guards.place = group.Member(weight)
	}
	c.share.place = c.Guards.place
	c.share.place.SetWeight(weight)
	c.share.place.Enter(c.used(), c.Wake)
}

// leave gives all places back.
func (s *share) leave() {
	if s.in() {
		s.place.Leave()
		*s = share{}
	}
}

// setBound sets how many places the topic can use.
func (s *share) setBound(n int) {
	if s.in() {
		s.place.SetBound(n)
	}
}

// take takes up to n places of the group for a claim; all without a group.
func (s *share) take(n int) int {
	if !s.in() {
		return n
	}
	n = s.place.Take(n)
	s.waits, s.tried = n == 0, true
	return n
}

// refund notes that n places of a claim found no timer.
func (s *share) refund(n int) {
	if s.in() && n > 0 {
		s.place.Refund(n)
	}
}

// giveBack gives back the places of leases that are no longer held.
func (c *Core) giveBack() {
	if c.share.in() {
		c.share.tried = false
		c.share.place.Return(c.used())
	}
}

// compete tells the group whether the topic has a use for more places.
func (c *Core) compete(now time.Time) {
	if !c.share.in() {
		return
	}
	c.share.waits = c.share.waits && c.share.tried
	able := c.free() > 0 && !c.outage.down && c.mayClaim(c.streams[0], now) && c.pace.heldUntil.IsZero() && c.pace.prompt()
	c.share.place.Compete(c.share.waits || able && c.pace.backlog)
}

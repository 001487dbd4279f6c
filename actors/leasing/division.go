package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/messages/exchange"
)

// divider is the part of this node in the division of the topic, see package division. It
// decides for how long a timer must have been due until this node claims it.
type divider struct {
	*division.Member // nil: the topic is not divided

	announcing  bool // an announcement is in flight
	overdueSeen bool // the next claim is for timers that this fallback saw overdue
}

// divide sends the announcement that is due, and sets for how long a timer must have
// been due until this node claims it.
func (c *Core) divide(now time.Time) {
	if c.divider.Member == nil {
		return
	}
	c.pace.fallback, c.pace.helping = c.divider.Delay(now, c.pace.backlog || c.free() <= 0)
	c.agenda[announce] = time.Time{}
	c.noteRole(now)
	if c.outage.down { // the announcement expires
		return
	}
	able := !c.paused && c.drain == nil && (c.breaker.Breaker == nil || c.breaker.State(now) != guard.Open)
	action, at := c.divider.Next(now, able)
	if c.agenda[announce] = at; action == "" {
		return
	}
	c.divider.announcing = true
	c.Effects.Announce(action)
}

// Announced processes the answer to an announcement that was sent at an instant.
func (c *Core) Announced(now, sent time.Time, action exchange.AnnounceAction, answer exchange.Announced, err error) {
	c.divider.announcing = false
	if !c.divider.Answered(sent, now, action, answer, err) {
		return
	}
	c.noteRole(now)
	role := c.divider.Role(now)
	if role == division.Primary {
		c.pace.lostRaces, c.pace.contentionDelay = 0, 0
	}
	c.Effects.RoleChanged(role, len(answer.Nodes))
}

// noteRole notes the role of this node for the metrics and for watchers.
func (c *Core) noteRole(now time.Time) {
	role := c.divider.Role(now)
	if known := c.Counters.Role.Load(); known == nil || *known != role {
		changed := role // role itself would be allocated at each call
		c.Counters.Role.Store(&changed)
	}
}

// divisionHint processes a hint about announcements.
func (c *Core) divisionHint(now time.Time, h exchange.Hint) {
	switch {
	case c.divider.Member == nil:
	case h.Kind != exchange.HintHelp:
		c.divider.Changed(now, h.Kind)
	case c.divider.Asked(now, h.Rank):
		c.pace.pollWithin(now, 0)
		c.divider.overdueSeen = true
	}
}

// askForHelp asks other nodes to claim as well, while timers are due that this one does
// not claim.
func (c *Core) askForHelp(now time.Time) {
	c.agenda[help] = time.Time{}
	if c.divider.Member == nil || c.outage.down || c.paused || c.drain != nil || !c.pace.heldUntil.IsZero() {
		return
	}
	full, due := c.free() <= 0, c.pace.nextDue()
	if !due.IsZero() {
		due = due.Add(c.pace.contentionDelay + c.pace.fallback)
	}
	behind := c.pace.backlog || !due.IsZero() && !now.Before(due)
	if !behind && c.reserved > 0 { // the claim in flight will tell
		return
	}
	if !behind && full && c.divider.Role(now) != "" {
		c.agenda[help] = due // no claim will be sent then
	}
	rank, at := c.divider.Help(now, behind, full)
	c.agenda.by(help, at)
	if rank == 0 {
		return
	}
	c.Counters.HelpRequests.Add(1)
	c.Effects.AskForHelp(rank)
}

// mayLook reports whether a fallback only looks at the topic instead of claiming: unless
// the poll was requested, or looks alone have kept the stream for too long.
func (c *Core) mayLook() bool {
	return c.pace.fallback > 0 && c.pace.requestedAt.IsZero() && c.head.peeks < peeksPerClaim
}

// look turns f into a peek whose answer says for how long timers have been due.
func (c *Core) look(f *Flight, now time.Time) {
	f.Peek = true
	c.endWatch()
	c.pace.pollSent(now)
}

// Peeked processes what a fallback saw, or a failure. It claims what has been due for too long.
func (c *Core) Peeked(now time.Time, f *Flight, answer exchange.PeekReply, err error) {
	f.stream.flight = nil
	if err != nil {
		c.peekFailed(now)
		c.redisFailed(now, f, err)
		return
	}
	c.head.peeks++
	c.Counters.Peeks.Add(1)
	c.redisAnswered(f)
	moved := !c.head.known || c.head.changed(answer, f.Sent, c.pace.dueAt)
	c.head.known, c.head.due = answer.Next != 0, time.Time{}
	if answer.Next > 0 {
		c.head.due = answer.Now.Add(answer.Next)
	}
	if c.pace.emptyPolls++; moved {
		c.pace.emptyPolls = 0
	}
	c.pace.plan(f.Sent, f.hintsSeen, answer.Now, answer.Next, 0)
	if answer.Next != 0 {
		return
	}
	if c.pace.dueAt = f.Sent.Add(-answer.Overdue); answer.Overdue >= c.pace.fallback {
		c.pace.pollWithin(now, 0)
		c.divider.overdueSeen = true
	}
}

// noteClaimed tells the division of the topic how many timers this node has claimed.
func (c *Core) noteClaimed(now time.Time, r *exchange.Reply, claimed int) {
	if c.divider.Member == nil {
		return
	}
	if c.divider.Fallback(now) {
		c.Counters.FallbackDelivered.Add(int64(claimed))
	}
	var late time.Duration
	if len(r.Leases) > 0 && r.Leases[0].Claims == 1 && !r.Leases[0].Snoozed {
		late = r.Now.Sub(r.Leases[0].Activation)
	}
	c.divider.Claimed(now, claimed, late)
}

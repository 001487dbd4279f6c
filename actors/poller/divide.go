package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Announcer lets the nodes of a topic agree which of them polls it first, see package
// division. It needs a Source that is a Peeker.
type Announcer interface {
	// Announce writes an announcement and returns the nodes that are announced.
	Announce(ctx context.Context, a exchange.Announcement) (exchange.Announced, error)
	// AskForHelp asks the announced nodes up to a rank to claim as well.
	AskForHelp(ctx context.Context, rank int) error
}

// announceTimeout bounds an announcement, because a drain waits for the last one.
const announceTimeout = time.Second

// announced is the answer to an announcement.
type announced struct {
	incarnation uint64
	action      exchange.AnnounceAction
	sent        time.Time
	answer      exchange.Announced
	err         error
}

// startDivision prepares the division of the topic, if its source can.
func (p *poller) startDivision() {
	if _, can := p.Source.(Peeker); can && !p.NoPeek && p.Announcer != nil && p.Node != "" {
		p.division = division.New(p.Source.Name(), p.Node, p.random)
	}
}

// divide sends the announcement that is due, and sets for how long a timer must have
// been due until this node claims it.
func (p *poller) divide(now time.Time) {
	if p.division == nil {
		return
	}
	p.pace.fallback, p.pace.helping = p.division.Delay(now, p.pace.backlog || p.free() <= 0)
	p.divideAt = time.Time{}
	p.noteRole(now)
	if p.unavailable { // the announcement expires
		return
	}
	able := !p.paused && p.drain == nil && (p.breaker == nil || p.breaker.State(now) != guard.Open)
	action, at := p.division.Next(now, able)
	if p.divideAt = at; action == "" {
		return
	}
	p.announcing = true
	ctx, tell, announcer, incarnation := p.queue.ctx, p.queue.toPoller, p.Announcer, p.incarnation
	a := exchange.Announcement{Action: action, Node: p.Node, Lease: division.Lease}
	p.io.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, announceTimeout)
		defer cancel()
		answer, err := host.Recovered("announcing", func() (exchange.Announced, error) { return announcer.Announce(ctx, a) })
		tell(announced{incarnation: incarnation, action: action, sent: now, answer: answer, err: err})
	})
}

// announcementAnswered processes the answer to an announcement.
func (p *poller) announcementAnswered(m announced) {
	p.announcing = false
	if m.err != nil && !errors.Is(m.err, context.Canceled) { // the poller does not end
		p.Counters.Errors.Add(1)
		if skipped, ok := p.logLimit.Allow("announce " + p.Source.Name()); ok {
			p.Logger.Warn("announcement failed; this node polls without regard to others", "err", m.err, "skipped", skipped)
		}
	}
	now := time.Now()
	if !p.division.Answered(m.sent, now, m.action, m.answer, m.err) {
		return
	}
	p.noteRole(now)
	if p.division.Role(now) == division.Primary {
		p.pace.lostRaces, p.pace.contentionDelay = 0, 0
	}
	p.Logger.Debug("role changed", "role", p.division.Role(now), "nodes", len(m.answer.Nodes))
}

// noteRole notes the role of this node for the metrics and for watchers.
func (p *poller) noteRole(now time.Time) {
	role := p.division.Role(now)
	if known := p.Counters.Role.Load(); known == nil || *known != role {
		changed := role // role itself would be allocated at each call
		p.Counters.Role.Store(&changed)
	}
}

// divisionHint processes a hint about announcements.
func (p *poller) divisionHint(h exchange.Hint) {
	now := time.Now()
	switch {
	case p.division == nil:
	case h.Kind != exchange.HintHelp:
		p.division.Changed(now, h.Kind)
	case p.division.Asked(now, h.Rank):
		p.pace.pollWithin(now, 0)
		p.overdueSeen = true
	}
}

// askForHelp asks other nodes to claim as well, while timers are due that this one does
// not claim.
func (p *poller) askForHelp(now time.Time) {
	p.helpAt = time.Time{}
	if p.division == nil || p.unavailable || p.paused || p.drain != nil || !p.pace.heldUntil.IsZero() {
		return
	}
	full, due := p.free() <= 0, earlier(p.pace.dueAt, p.pace.hintAt)
	if !due.IsZero() {
		due = due.Add(p.pace.contentionDelay + p.pace.fallback)
	}
	behind := p.pace.backlog || !due.IsZero() && !now.Before(due)
	if !behind && p.reserved > 0 { // the claim in flight will tell
		return
	}
	if !behind && full && p.division.Role(now) != "" {
		p.helpAt = due // no claim will be sent then
	}
	rank, at := p.division.Help(now, behind, full)
	p.helpAt = earlier(p.helpAt, at)
	if rank == 0 {
		return
	}
	p.Counters.HelpRequests.Add(1)
	ctx, announcer, log := p.queue.ctx, p.Announcer, p.Logger
	p.io.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, announceTimeout)
		defer cancel()
		// Without help the fallbacks claim when their delay has passed.
		if err := announcer.AskForHelp(ctx, rank); err != nil {
			log.Debug("asking for help failed", "err", err)
		}
	})
}

// mayLook reports whether a fallback only looks at the topic instead of claiming: unless
// the poll was requested, or looks alone have kept the stream for too long.
func (p *poller) mayLook(f *flight) bool {
	return p.pace.fallback > 0 && p.pace.requestedAt.IsZero() && p.head.peeks < peeksPerClaim && len(f.request.Settle)+len(f.request.Extend) == 0
}

// look turns f into a peek whose answer says for how long timers have been due.
func (p *poller) look(f *flight) {
	f.request.Want, f.peek, f.look = 0, true, true
	p.pace.pollSent(time.Now())
}

// looked processes what a fallback saw. It claims what has been due for too long.
func (p *poller) looked(f *flight, answer exchange.PeekReply, now time.Time) {
	moved := !p.head.known || p.headChanged(answer, f.sent)
	p.head.known, p.head.due = answer.Next != 0, time.Time{}
	if answer.Next > 0 {
		p.head.due = answer.Now.Add(answer.Next)
	}
	if p.pace.emptyPolls++; moved {
		p.pace.emptyPolls = 0
	}
	p.pace.plan(f.sent, f.hintsSeen, answer.Now, answer.Next, 0)
	if answer.Next != 0 {
		return
	}
	if p.pace.dueAt = f.sent.Add(-answer.Overdue); answer.Overdue >= p.pace.fallback {
		p.pace.pollWithin(now, 0)
		p.overdueSeen = true
	}
}

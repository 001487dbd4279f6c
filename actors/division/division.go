// Package division decides which node of a topic polls it first. Nodes that compete for
// the timers of a topic announce themselves on it, and rank each other by rendezvous
// hashing: the node of rank 0 is the primary and polls as soon as a timer is due. The
// others are fallbacks: they look at the topic now and then, and claim what has been due
// for longer than their delay, or when the primary asks for help.
//
// Nothing but speed depends on it, because leases decide who handles a timer. A node that
// cannot read the announcements polls like a primary. The package has no clock, no
// goroutine and no Redis; the poller owns a Member.
package division

import (
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/rendezvous"
	"github.com/wakebell/wakebell/messages/exchange"
)

const (
	// Lease is for how long an announcement holds. The topics of a node that died are
	// taken over for good when it has expired.
	Lease = 10 * time.Second

	// firstDelay is how long a timer must have been due until the fallback of rank 1
	// claims it unasked. It doubles with each rank, and with each such claim that came
	// too late (maxMissed of them count), up to maxDelay.
	firstDelay = 250 * time.Millisecond
	maxDelay   = 4 * time.Second
	maxMissed  = 3

	// joinAfter is the number of races that a node loses within a Lease before it
	// announces itself: a node that is alone never does. A primary that claims fewer
	// than stayFor timers in a Lease dissolves the division, because announcements
	// would cost more than they save.
	joinAfter = 4
	stayFor   = 3

	// lookWithin is the time within which a node that starts to poll looks for others. It
	// may never lose a race, because a primary claims timers before they are due.
	lookWithin = time.Second

	// spread is the time within which nodes react to a change that concerns all.
	spread = 100 * time.Millisecond

	// helpFor is for how long a fallback that claimed late timers, or that was asked for
	// help, helps: its delay is short then, so that it claims what a primary in good
	// health would have claimed before.
	helpFor      = 500 * time.Millisecond
	helpDelay    = 10 * time.Millisecond // of rank 1
	maxHelpDelay = 50 * time.Millisecond
	// fullFor is how long a node without a free slot waits before it asks for help while
	// timers are due. A primary with free slots, which is slow or far from Redis, asks
	// rank 1 after behindFor. Only full nodes ask further ones: where the machine is
	// overloaded, more pollers make it slower still.
	fullFor, behindFor = 2 * time.Millisecond, 50 * time.Millisecond
	// A node that is behind again and again asks after firstAsk, doubling up to maxAsk.
	// After askAfresh without a request it starts again.
	firstAsk, maxAsk, askAfresh = 20 * time.Millisecond, 320 * time.Millisecond, time.Second
)

// Member is a node's part in the division of one topic.
type Member struct {
	topic, node string
	random      func() float64 // in [0, 1)

	*membership // nil: the node has not joined

	next     time.Time // when to announce or to look; zero: not while not joined
	look     bool      // while not joined: join only if others are announced
	inFlight bool
	stale    bool // the announcements have changed since the one in flight was sent

	lost      int       // races since lostSince
	lostSince time.Time // when the first of them was lost
	blocked   time.Time // no announcement before, because the last one failed
}

// membership is what only a node that has joined needs. Of a node with thousands of topics,
// most have no other node.
type membership struct {
	rank  int
	size  int // announced nodes
	until time.Time

	invite  bool      // the next announcement invites others
	invited time.Time // when this node last did
	claims  int       // timers since from
	from    time.Time // since when claims counts

	missed      int       // unasked claims in a row that came too late: each doubles the delay
	missedAt    time.Time // the last of them; after a Lease they do not count
	helping     bool
	helpUntil   time.Time
	behindSince time.Time     // since when timers are due that this node does not claim; zero: none are
	asked       time.Time     // when this node last asked for help
	askEvery    time.Duration // until it may ask again
}

// New returns the part of a node, which is not announced yet.
func New(topic, node string, random func() float64) *Member {
	return &Member{topic: topic, node: node, random: random, look: true}
}

// joined reports whether the node is announced.
func (m *Member) joined() bool { return m.membership != nil }

// active reports whether the member knows its rank among several nodes.
func (m *Member) active(now time.Time) bool {
	return m.joined() && m.size > 1 && now.Before(m.until)
}

// The roles of nodes that divide a topic.
const (
	Primary  = "primary"
	Fallback = "fallback"
)

// Role is Primary or Fallback; empty if the topic is not divided.
func (m *Member) Role(now time.Time) string {
	switch {
	case !m.active(now):
		return ""
	case m.rank == 0:
		return Primary
	default:
		return Fallback
	}
}

// Fallback reports whether the node is not the primary, helping or not.
func (m *Member) Fallback(now time.Time) bool { return m.active(now) && m.rank > 0 }

// Delay is for how long a timer must have been due until this node claims it; 0 for a
// primary. A fallback that helps continues while it is busy, that is while it knows of
// more timers or has no free slot.
func (m *Member) Delay(now time.Time, busy bool) (delay time.Duration, helping bool) {
	if m.joined() {
		m.helping = m.helping && (busy || now.Before(m.helpUntil))
	}
	switch {
	case !m.Fallback(now):
		return 0, false
	case m.helping:
		return min(helpDelay*time.Duration(m.rank), maxHelpDelay), true
	default:
		if now.Sub(m.missedAt) > Lease {
			m.missed = 0
		}
		return backoff.Exponential(firstDelay, m.rank-1+m.missed, maxDelay), false
	}
}

// Lost notes that another node had taken the timer that this node polled for. A fallback
// then stops helping: it is not needed. overdue says that it had seen the timer overdue.
func (m *Member) Lost(now time.Time, overdue bool) {
	if m.joined() {
		m.helping = false
		if overdue {
			m.missed, m.missedAt = min(m.missed+1, maxMissed), now
		}
	}
	if now.Sub(m.lostSince) > Lease {
		m.lost, m.lostSince = 0, now
	}
	if m.lost++; m.lost >= joinAfter && !m.joined() && (m.look || m.next.IsZero()) && !now.Before(m.blocked) {
		m.join(now)
	}
	// A primary that loses races competes with a node that is not announced, and that may
	// never lose one itself.
	if m.joined() && m.rank == 0 && m.lost >= joinAfter && now.Sub(m.invited) > Lease {
		m.invite, m.invited = true, now
		m.announceBy(now)
	}
}

// Claimed notes that an exchange claimed timers, the first of them late by so much.
func (m *Member) Claimed(now time.Time, timers int, late time.Duration) {
	if m.joined() {
		m.claims += timers
	}
	if timers > 0 && late >= helpDelay && m.Fallback(now) {
		m.missed = 0
		m.help(now)
	}
}

func (m *Member) help(now time.Time) { m.helping, m.helpUntil = true, now.Add(helpFor) }

// Changed notes a hint that the announcements of the topic have changed. A node that is
// not announced joins those that are, even if it never lost a race: otherwise the others
// would elect a primary beside it.
func (m *Member) Changed(now time.Time, kind exchange.HintKind) {
	m.stale = m.inFlight
	if m.joined() || kind == exchange.HintJoined && !now.Before(m.blocked) {
		m.join(now.Add(m.within(spread)))
	}
}

// join announces the node at an instant, whether others are announced or not.
func (m *Member) join(at time.Time) {
	m.look = false
	m.announceBy(at)
}

func (m *Member) within(d time.Duration) time.Duration {
	return time.Duration(m.random() * float64(d))
}

func (m *Member) announceBy(at time.Time) {
	if m.next.IsZero() || at.Before(m.next) {
		m.next = at
	}
}

// Asked notes that a node asks those up to a rank for help, and reports whether this one
// is meant.
func (m *Member) Asked(now time.Time, rank int) bool {
	if !m.Fallback(now) || m.rank > rank {
		return false
	}
	m.help(now)
	return true
}

// Next returns what to announce now, if anything, and otherwise when to ask again; zero:
// after the next event. able is false while the node can claim nothing.
func (m *Member) Next(now time.Time, able bool) (action exchange.AnnounceAction, at time.Time) {
	if m.look && able && m.next.IsZero() && !m.inFlight {
		m.next = latest(now, m.blocked).Add(m.within(lookWithin))
	}
	switch {
	case m.inFlight:
		return "", time.Time{}
	case !able && m.joined():
		action = exchange.AnnounceLeave
	case !able:
		m.next, m.lost = time.Time{}, 0
		return "", time.Time{}
	case m.next.IsZero() || now.Before(m.next):
		return "", m.next
	case !m.joined() && m.look:
		m.look, action = false, exchange.AnnounceStay // which adds no node
	case !m.joined():
		action = exchange.AnnounceJoin
	case m.idle(now):
		action = exchange.AnnounceDissolve
	case m.invite:
		m.invite, action = false, exchange.AnnounceInvite
	default:
		action = exchange.AnnounceStay
	}
	m.inFlight = true
	return action, time.Time{}
}

// idle reports whether the division is not worth its announcements.
func (m *Member) idle(now time.Time) bool {
	if now.Sub(m.from) < Lease {
		return false
	}
	idle := m.size == 1 || m.rank == 0 && m.claims < stayFor
	m.claims, m.from = 0, now
	return idle
}

// Answered notes the answer to an announcement that was sent at an instant. After an
// error the node polls like a primary, and announces itself again after a Lease at the
// earliest. It reports whether the role has changed.
func (m *Member) Answered(sent, now time.Time, action exchange.AnnounceAction, answer exchange.Announced, err error) (changed bool) {
	before := m.Role(now)
	stale := m.stale
	m.inFlight, m.stale, m.next = false, false, time.Time{}
	rank := rendezvous.Rank(m.topic, m.node, answer.Nodes)
	if err != nil || rank < 0 || action == exchange.AnnounceLeave || action == exchange.AnnounceDissolve {
		m.membership, m.lost = nil, 0
		switch {
		case err != nil:
			m.look, m.blocked = true, now.Add(Lease)
		case action == exchange.AnnounceLeave:
			m.look = true // when it can claim again
		case len(answer.Nodes) > 0:
			m.join(now)
		}
		return m.Role(now) != before
	}
	if !m.joined() {
		m.membership = &membership{rank: rank, from: now}
	}
	if m.rank != rank {
		m.claims, m.from = 0, now
	}
	m.rank, m.size, m.until = rank, len(answer.Nodes), sent.Add(Lease)
	m.next = now.Add(time.Duration(float64(Lease/3) * (0.8 + 0.4*m.random())))
	m.announceBy(now.Add(answer.Expires + m.within(spread))) // of a node that died
	if stale {
		m.next = now.Add(m.within(spread))
	}
	return m.Role(now) != before
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Help decides whether this node asks others for help: it claims like a primary, timers
// are due (behind), and it has not claimed them for a while. full says that it has no
// free slot. It returns the highest rank to ask, 0 for none, and when to ask again.
func (m *Member) Help(now time.Time, behind, full bool) (rank int, at time.Time) {
	switch {
	case !m.joined():
		return 0, time.Time{}
	case !behind, !m.active(now), m.rank > 0 && (!m.helping || !full):
		m.behindSince = time.Time{}
		return 0, time.Time{}
	}
	if m.behindSince.IsZero() {
		m.behindSince = now
	}
	at = m.behindSince.Add(behindFor)
	if full {
		at = m.behindSince.Add(fullFor)
	}
	if soonest := m.asked.Add(m.askEvery); at.Before(soonest) {
		at = soonest
	}
	if now.Before(at) {
		return 0, at
	}
	if m.askEvery = min(2*m.askEvery, maxAsk); now.Sub(m.asked) > askAfresh {
		m.askEvery = firstAsk
	}
	m.asked = now
	return 2*m.rank + 1, now.Add(m.askEvery)
}

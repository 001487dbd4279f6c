// Package leasing decides what a poller does with the leases of a topic: when to claim, how
// many and how far ahead, what to settle, to extend, to return and to hold back, and what to
// report. It is the pure core of package poller, made like the core of etcd-io/raft: the core
// decides, its caller acts.
//
// # Usage
//
// The caller creates a [Core] with [New], calls Start, and then calls a method for each event:
// an answer, the end of a handler, a hint, a request of the supervisor, a tick. After each
// event it calls [Core.Advance], which sends what can be sent, and which returns the instant
// of the next tick. What the core has done goes through [Effects], an interface that the
// caller implements, and through the [Run] of each lease.
//
// # Purity
//
// Each method is a function of the core's state and of its arguments. The core has no
// goroutine, lock, channel, clock, context or random source: instants and random numbers are
// arguments, so the same events have the same effects. A test of this package looks for all
// of these. A test, or a simulator in virtual time, implements Effects and is the rest of the
// world.
//
// # How a decision is made
//
// Each policy is a value with its own state that answers one question:
//
//	pace         when is the next poll?                          pace.go
//	window       for how long does the next exchange wait?       window.go
//	early        how long before their instants are timers claimed, and which are kept?  early.go
//	prefetch     how many leases beyond the free handlers?       prefetch.go
//	keyRuns      which leases wait for another of their key?     key_runs.go
//	head         do peeks suffice instead of claims?             head.go
//	divider      may this node claim now, or only look?          division.go
//	breaker      may the handlers have another timer?            breaker.go
//	concurrency  how many handlers run at once?                  concurrency.go
//	share        how many places of its group may the topic take?  share.go
//	override     is it known what operators have set?            override.go
//	outage       may anything be sent?                           outage.go
//	drain        what is left to do before the poller ends?      drain.go
//
// decide (claim.go) asks them in a fixed order, and a table there says which answer wins. An
// agenda has one deadline for each cause to act (agenda.go).
package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/observe"
)

const (
	// maxClaim bounds the claims of one exchange: larger exchanges gain nothing
	// and block Redis for longer.
	maxClaim = 100
	// maxSettle bounds the settlements of one exchange, and its extensions, because each
	// blocks Redis too.
	maxSettle = 4 * maxClaim
	// maxSettleByKey bounds the settlements of one exchange of a topic with limits by key:
	// each wakes the next timer of its key. A stream settles no faster than it claims.
	maxSettleByKey = 3 * maxClaim / 2
	// maxHeldBytes bounds the bytes of the leases that one exchange settles, or extends, but for
	// the last: a message of a queue is part of the token of its lease.
	maxHeldBytes = 4 << 20
	// maxReject bounds the timers that one exchange dead-letters: each is an entry of a stream
	// with its payload.
	maxReject = maxClaim / 2
	// secondStreamAt is the number of slots from which a second concurrent
	// exchange pays off: below it, both are only smaller.
	secondStreamAt = 50
)

// Config is what a Core knows of its topic and of its caller.
type Config struct {
	*Policy  // nil: the zero Policy
	Effects  Effects
	Counters *observe.Counters // what operators see; they outlive the core
	Guards   *Guards           // outlive the core

	Random  func() float64 // the next random number, in [0, 1)
	Wake    func()         // asks the caller for Advance; any goroutine may call it
	NewName func() string  // a name for a stream that no other stream has, on any node

	Forwards  bool   // leases are forwarded: only their targets ask to extend them
	Peeks     bool   // the source can peek
	Snoozes   bool   // the source can take back what a snooze has counted
	Overrides bool   // there is an override to read before the first claim
	Reports   bool   // the state of this node is stored for operators
	Topic     string // the physical topic
	Node      string // names this node among those that divide the topic; empty: it is not divided
}

// Core is the state of a poller. Its methods must not be called concurrently.
type Core struct {
	Config
	// Settings are in force: those of the topic with the override. They are replaced, and never
	// changed: topics with the same settings share them.
	*Settings
	paused   bool // claims nothing
	withheld bool // it is paused because its part of a limit is nothing

	streams  []*Stream
	reserved int // slots of claims in flight

	pace        pace
	window      window
	early       early
	prefetch    prefetch
	head        head
	divider     divider
	breaker     breaker
	concurrency concurrency
	share       share
	override    override
	outage      outage
	reports     *reports // nil: nothing was reported
	longRuns    longRuns
	keyRuns     keyRuns
	orphans     orphans
	drain       *drain // nil: not draining

	emptyClaims int // polls in a row that found a due timer and could not claim it
	agenda      agenda
}

// New returns the core of a poller that has just started.
func New(cfg Config) *Core {
	if cfg.Policy == nil {
		cfg.Policy = &Policy{}
	}
	c := &Core{Config: cfg, Settings: &Settings{}}
	c.pace, c.window = pace{random: cfg.Random}, window{fixed: cfg.Window}
	return c
}

// Start begins with the settings of the topic. Nothing is claimed before the override has
// been read, if there is one.
func (c *Core) Start(now time.Time, s *Settings, paused bool) {
	c.pace.pollWithin(now, 0)
	if c.breaker.Breaker = c.Guards.Breaker; c.breaker.Breaker != nil {
		if c.breaker.reported = guard.Open; c.breaker.Until().IsZero() { // else a change meanwhile is still to be reported
			c.breaker.reported = c.breaker.State(now)
		}
	}
	c.concurrency.limiter = c.Guards.Limiter
	if c.Node != "" && c.Peeks && !c.NoPeek {
		c.divider.Member = division.New(c.Topic, c.Node, c.Random)
	}
	c.Counters.LongRuns.Store(nil)
	c.orphans.held = c.Counters.OrphansHeld.Load() > 0
	c.Apply(now, s, paused)
	c.readOverride(now)
}

// Stop gives back what the core shares with others: its places in a group. It ends the watch.
// The leases expire.
func (c *Core) Stop() {
	c.share.leave()
	c.endWatch()
}

// Apply puts the topic's settings and the override in force, at the start and after each
// change. A change applies to running handlers too: LeaseTTL from the next extension,
// MaxLeaseAge at once, retry settings when the handler returns. A lower MaxConcurrent ends
// none. The caller does not change s afterwards.
func (c *Core) Apply(now time.Time, s *Settings, paused bool) {
	c.override.ownPaused = paused
	c.putInForce(now, s)
}

// applySettings is Apply with the settings of the topic as they are known.
func (c *Core) applySettings(now time.Time) { c.putInForce(now, c.override.own) }

// putInForce is Apply for a topic that is paused as before.
func (c *Core) putInForce(now time.Time, own *Settings) {
	wasPaused, flow := c.paused, c.Flow
	changed := *own
	if c.override.Apply != nil {
		c.override.Apply(&changed)
	}
	changed, c.withheld = changed.ofPart(own.Part)
	if c.override.own, c.Settings = own, own; changed != *own {
		c.Settings = &changed
	}
	c.paused = c.withheld || c.override.ownPaused || c.override.Paused || (c.Overrides && !c.override.known)
	if wasPaused && !c.paused {
		c.pace.pollWithin(now, 0)
	}
	if c.Flow != flow { // what held timers back may be over
		c.pace.heldUntil = time.Time{}
		c.pace.pollWithin(now, 0)
		if next := now.Add(c.overrideInterval()); c.agenda[readOverride].After(next) {
			c.agenda[readOverride] = next // keys have to be looked after from now on
		}
	}
	c.pace.base, c.pace.limit = c.PollingInterval, c.MaxPollingInterval
	c.agenda[examine] = now
	c.planAsk(now)
	c.enterGroup(max(own.Shards, 1))
	c.applyConcurrency(now)
	c.openStreams()
}

// Advance does everything that has become due or possible, and returns when to call Tick and
// Advance next; zero: as the call before said. The caller calls it after each event.
func (c *Core) Advance(now time.Time) (wake time.Time) {
	c.endDrainPhase(now)
	c.examineLeases(now)
	c.watchRuns(now)
	c.handOut(now)
	if len(c.keyRuns.next) > 0 {
		c.returnKeyRuns(now)
	}
	c.watchBreaker(now)
	c.giveBack()
	c.divide(now)
	c.report(now)
	if !c.outage.down && c.agenda.due(readOverride, now) {
		c.readOverride(now)
	}
	c.markSettled()
	c.setPrefetch(now)
	c.returnExcess(now)
	c.openStreams()
	c.checkWatch(now)
	c.sendAll(now)
	c.compete(now)
	c.askForHelp(now)
	c.checkDrain(now)
	c.Counters.Held.Store(int64(c.Leases()))
	return c.wake(now)
}

// Tick notes that the instant has come that Advance returned last.
func (c *Core) Tick() { c.agenda[tick] = time.Time{} }

// slots is the number of leases that the handlers can have at once.
func (c *Core) slots() int {
	if c.Batch.Size == 0 {
		return c.concurrency.limit
	}
	return min(c.concurrency.limit*c.Batch.Size, maxBatched)
}

// perSlot is the number of leases that a handler has at once.
func (c *Core) perSlot() int { return max(c.Batch.Size, 1) }

// free is the number of slots, prefetch included, that neither a lease nor a
// claim in flight occupies. A batch occupies as many as a full one. A lease that was
// claimed early occupies none until its timer is due, and one that waits for another of its
// key none until it begins.
func (c *Core) free() int {
	return c.slots() + c.prefetch.limit + len(c.early.leases) - c.Effects.Occupied() - c.used()
}

// Leases is the number of leases that are held: with a handler, or queued for one.
func (c *Core) Leases() (held int) {
	for _, s := range c.streams {
		held += len(s.held)
	}
	return held
}

// Kept is how many of Leases wait for their instants.
func (c *Core) Kept() int { return len(c.early.leases) }

// Concurrency is the number of handlers that may run at once.
func (c *Core) Concurrency() int { return c.concurrency.limit }

// used is how many places of a group the topic uses: those of its leases that wait for no other
// of their key, and of its claims in flight.
func (c *Core) used() int { return c.reserved + c.Leases() - len(c.keyRuns.next) }

// Health is what operators see of a core.
type Health struct {
	Paused, Draining bool
	Leases           int   // held
	Failures         int   // consecutive failed exchanges, of the topic alone
	Err              error // of the last of them
	Role             string
}

// Health returns the present state.
func (c *Core) Health(now time.Time) Health {
	c.watchBreaker(now)
	h := Health{Paused: c.paused && !c.withheld, Draining: c.drain != nil, Leases: c.Leases()}
	if c.divider.Member != nil {
		h.Role = c.divider.Role(now)
	}
	for _, s := range c.streams {
		if s.failures > h.Failures && !s.waiting {
			h.Failures, h.Err = s.failures, s.err
		}
	}
	return h
}

// Guards are the parts of a core that outlive it, so that a crash of the poller does not
// close a breaker.
type Guards struct {
	Breaker *guard.Breaker // nil: none
	Limiter *guard.Limiter // nil: the concurrency is fixed
	place   *guard.Member  // nil: in no group
}

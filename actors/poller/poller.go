// Package poller has the actors that deliver the timers of a topic: a poller that
// owns the leases, and the handler actors that run user code. It declares the
// [Source] that it consumes. It makes no compatibility promise.
//
// Files by concept: poller, pump, replies (the exchange loop), stream (one sequence
// of exchanges), lease, heartbeat, settle, runqueue, handler, delivery, batch (a lease
// and its handler), forward, forward_batch (delivery to actors), pace, peek, prefetch,
// window, early, divide (when and how much to claim), deliver, orphans, deadhook, events, counters, report (what others
// learn), topic, override (settings), protocol (what the poller consumes, and its
// messages with the supervisor), drain, clock.
package poller

import (
	"crypto/rand"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// poller is the actor that owns the leases of a topic: it claims them over its
// streams, passes them to handlers and settles them with the handlers' outcomes.
// All of its state is accessed in Receive only.
type poller struct {
	*Shared

	// Settings are in force: those of the topic with the cluster-wide override.
	// Because they are embedded here, p.LeaseTTL is this field's, and never that of
	// the Settings inside Shared.
	Settings
	paused      bool   // claims nothing
	withheld    bool   // it is paused because its part of a limit is nothing
	incarnation uint64 // messages of earlier incarnations are dropped

	self, parent *actor.PID
	root         *actor.RootContext

	queue    *runQueue
	handlers []*actor.PID
	streams  []*stream
	reserved int // slots of claims in flight

	pace        pace
	head        headState
	prefetch    prefetch
	early       early
	window      window
	division    *division.Member // nil: the topic is not divided
	overdueSeen bool             // the next claim is for timers that this fallback saw overdue
	announcing  bool             // an announcement is in flight
	divideAt    time.Time        // next: when to announce; zero: after the next event
	helpAt      time.Time        // next: when to ask for help; zero: after the next event
	emptyClaims int              // polls in a row that found a due timer and could not claim it
	leasesAt    time.Time        // next: when a lease must be examined; zero: none must
	batchAt     time.Time        // next: when delayed settlements are sent; zero: none are delayed
	windowAt    time.Time        // next: when settlements that a window delays are sent; zero: none are
	clock       clock            // the source's clock at its last reply
	timer       *time.Timer
	timerAt     time.Time // next: when timer sends its tick; zero: it is stopped

	// While unavailable is set, Redis is down and the poller sends only what the
	// supervisor requests. probing is set while such a request is in flight.
	unavailable, probing bool
	// heldAt is when unavailable was set last. Answers to requests that were sent before
	// do not say that Redis is back.
	heldAt time.Time

	override                       ClusterOverride // as last read
	overrideKnown                  bool
	overrideFailures               int
	overrideReading, overrideStale bool      // it is being read; it changed after that read began
	claimsSuspended                bool      // until the override that a hint announced has been read
	overrideAt                     time.Time // next: when override is read again; zero: never
	control, noticed               string    // mark of override; of the settings for which it is being read, if an answer said that they had changed
	askAt                          time.Time // next: when to ask whether the settings have changed; zero: claims do

	reports reports

	breakerState guard.State // as last reported
	grouped      bool        // it is in a group
	groupedFor   int         // the number of shards for which it was put there; 0: not yet
	awaitsShare  bool        // it waits for a place of its group
	triedShare   bool        // in this pump
	concurrency  int         // handlers that may run at once: MaxConcurrent, or less

	collectingOrphans bool
	orphansAt         time.Time // last: when orphans were collected
	drain             *drain    // nil: not draining
}

// A message that a poller sends to itself carries its incarnation, because
// mailboxes outlive a restart.
type (
	tick             struct{ incarnation uint64 }
	completed        struct{ incarnation uint64 }
	shareFree        struct{ incarnation uint64 } // a place of the group is free
	handlerRestarted struct{ incarnation uint64 } // a crashed handler was restarted
	workerNeeded     struct{ incarnation uint64 } // there is a lease that no worker takes
	orphansCollected struct {
		incarnation uint64
		swept       exchange.Swept
		err         error
	}
)

// Props returns the props of the poller of a topic.
func Props(t *Shared) *actor.Props {
	options := append([]actor.PropsOption{
		actor.WithSupervisor(host.RestartHandler.WithRandom(t.random)),
		actor.WithDispatcher(t.dispatcher),
	}, t.props...)
	return actor.PropsFromProducer(func() actor.Actor {
		return host.LogCrashes(t.Logger, &poller{Shared: t, incarnation: uint64(t.Counters.Incarnations.Add(1))})
	}, options...)
}

// Receive handles a message and then sends the exchanges that have become possible.
// If it panics, it ends what this incarnation owns: until the restart, which is
// delayed, nothing would extend its leases.
func (p *poller) Receive(c actor.Context) {
	sound := false
	defer func() {
		if !sound {
			p.stop()
		}
	}()
	switch c.Message().(type) {
	case *actor.Started:
		p.start(c)
		p.pump(c, time.Now())
	case *actor.Stopping, *actor.Restarting:
		p.stop()
	default:
		// Messages still arrive while the handlers stop.
		if p.queue != nil && p.receive(c.Message(), c.Sender()) {
			p.pump(c, time.Now())
		}
	}
	sound = true
}

// receive reports whether the message was for this incarnation.
func (p *poller) receive(message any, sender *actor.PID) bool {
	switch m := message.(type) {
	case tick:
		if m.incarnation != p.incarnation {
			return false
		}
		p.timerAt = time.Time{}
	case exchanged:
		if m.incarnation != p.incarnation {
			return false
		}
		p.exchangeAnswered(m)
	case peeked:
		if m.incarnation != p.incarnation {
			return false
		}
		p.peekAnswered(m)
	case completed:
		if m.incarnation != p.incarnation {
			return false
		}
		p.collect()
	case shareFree:
		return m.incarnation == p.incarnation
	case handlerRestarted:
		return m.incarnation == p.incarnation
	case workerNeeded: // pump spawns it
		return m.incarnation == p.incarnation
	case orphansCollected:
		if m.incarnation != p.incarnation {
			return false
		}
		p.orphansCollected(m)
	case settleNow:
		if m.lease.stream.ctx != p.queue.ctx {
			return false // the lease of an earlier incarnation; its context has ended
		}
		p.settleNow(m)
	case extendNow:
		if m.lease.stream.ctx != p.queue.ctx {
			return false
		}
		p.extendNow(m)
	case exchange.Hint:
		p.handleHint(m)
	case overrideRead:
		if m.incarnation != p.incarnation {
			return false
		}
		p.applyOverride(m)
	case announced:
		if m.incarnation != p.incarnation {
			return false
		}
		p.announcementAnswered(m)
	case reported:
		if m.incarnation != p.incarnation {
			return false
		}
		p.reportEnded(m)
	case CheckHealth:
		p.checkHealth(m)
		return false // nothing has changed
	case SettingsChanged:
		p.applySettings()
	case Hold:
		p.hold()
	case Probe:
		p.probe()
	case Resume:
		p.resume(m)
	case *messages.Drain:
		p.startDrain(m, sender)
	case endDrain:
		if m.incarnation != p.incarnation {
			return false
		}
		p.endDrain(m)
	default:
		return false
	}
	return true
}

func (p *poller) start(c actor.Context) {
	p.self, p.parent, p.root = c.Self(), c.Parent(), c.ActorSystem().Root
	p.queue = newRunQueue(p.root, p.self, p.incarnation)
	if p.Batch.Size > 0 {
		p.queue.formBatches(p.Batch.Size)
	}
	p.pace, p.window = pace{random: p.random}, window{fixed: p.Window}
	p.pace.pollWithin(time.Now(), 0)
	if p.breaker != nil {
		p.breakerState = p.breaker.State(time.Now())
	}
	p.startDivision()
	p.applySettings()
	p.readOverride()
	p.root.Send(p.parent, Started{p.self})
}

// applySettings puts the topic's settings and the cluster-wide override in force,
// at the start and after each change. A change applies to running handlers too:
// LeaseTTL from the next extension, MaxLeaseAge at once, retry settings when the
// handler returns. A lower MaxConcurrent ends none.
func (p *poller) applySettings() {
	state, wasPaused, flow := p.State.Load(), p.paused, p.Flow
	p.Settings = state.Settings
	if p.override.Apply != nil {
		p.override.Apply(&p.Settings)
	}
	p.Settings, p.withheld = p.ofPart(state.Settings.Part)
	p.paused = p.withheld || state.Paused || p.override.Paused || (p.ReadOverride != nil && !p.overrideKnown)
	if wasPaused && !p.paused {
		p.pace.pollWithin(time.Now(), 0)
	}
	if p.Flow != flow { // what held timers back may be over
		p.pace.heldUntil = time.Time{}
		p.pace.pollWithin(time.Now(), 0)
		if next := time.Now().Add(p.overrideInterval()); p.overrideAt.After(next) {
			p.overrideAt = next // keys have to be looked after from now on
		}
	}
	p.pace.base, p.pace.limit = p.PollingInterval, p.MaxPollingInterval
	p.leasesAt = time.Now()
	p.planAsk()
	p.enterGroup()
	p.applyConcurrency()
	p.openStreams()
}

// openStreams opens as many streams as the number of slots justifies.
func (p *poller) openStreams() {
	for len(p.streams) < streamsFor(p.slots()+p.prefetch.limit) {
		p.openStream()
	}
}

func (p *poller) openStream() {
	s := &stream{
		number: len(p.streams), incarnation: newStreamIncarnation(), requests: make(chan *flight, 1),
		toPoller: p.queue.toPoller, ctx: p.queue.ctx,
	}
	p.streams = append(p.streams, s)
	ctx, source, incarnation := p.queue.ctx, p.Source, p.incarnation
	p.io.Go(func() { s.serve(ctx, source, incarnation) })
}

// newStreamIncarnation returns a name that is unique among all pollers of all
// nodes.
func newStreamIncarnation() string { return rand.Text() }

// stop ends everything that this incarnation owns. Its leases expire.
func (p *poller) stop() {
	if p.queue == nil {
		return
	}
	p.queue.stop()
	for _, s := range p.streams {
		close(s.requests)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.drain != nil {
		p.drain.timer.Stop()
	}
	if p.grouped {
		p.share.Leave()
		p.grouped, p.groupedFor = false, 0
	}
	p.Counters.Held.Store(0)
	p.queue = nil
}

// handleHint looks again: at the first timer, the leases or the override. What it
// then does depends on what it reads, so a lost or false hint costs only time.
func (p *poller) handleHint(h exchange.Hint) {
	switch h.Kind {
	case exchange.HintDue:
		p.pace.handleHint(time.Now(), max(h.In, 0), h.Sent)
	case exchange.HintFree:
		p.pace.handleFree(time.Now(), h.Sent)
	case exchange.HintSubscribed:
		p.pace.heldUntil = time.Time{} // a hint that ended it may have been missed
		p.pace.pollWithin(time.Now(), time.Duration(float64(subscribedJitter)*p.random()))
		p.readOverride()
		if p.Target != nil { // a hint of a cancel may have been missed, and forwarded leases have no heartbeat
			p.verifyLeases("")
		}
	case exchange.HintControl:
		p.suspendClaims()
	case exchange.HintCheck:
		p.verifyLeases(h.ID)
	case exchange.HintJoined, exchange.HintLeft, exchange.HintHelp:
		p.divisionHint(h)
	}
}

// subscribedJitter keeps thousands of topics from polling at the same time when
// their common subscription is restored.
const subscribedJitter = 100 * time.Millisecond

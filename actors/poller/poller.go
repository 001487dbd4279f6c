// Package poller holds the actor that owns the leases of a topic, and its
// handlers. It claims leases from a [Source] over its streams, hands them to
// handler actors, extends them while handlers run, and settles them with the
// outcomes.
//
// Files by concept: poller, pump, answers (the exchange loop), stream (one
// sequence of exchanges), lease, leases, run, handler, delivery (a lease on its
// way through a handler), pace, ahead, glance (when and how much to claim), hook,
// events, tail (what others learn of it), topic, order (settings), protocol (the
// messages between poller and supervisor), drain.
package poller

import (
	"crypto/rand"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// poller is the actor that owns a topic's leases: it claims them over its
// streams, hands them to handlers, and settles them with the handlers'
// outcomes. All of its state is touched in Receive only.
type poller struct {
	*Shared
	Settings           // those in force; they shadow the ones that it began with
	paused      bool   // claims nothing
	incarnation uint64 // tells its messages from those of earlier incarnations

	self, parent *actor.PID
	root         *actor.RootContext

	queue    *runQueue
	handlers []*actor.PID
	streams  []*stream
	reserved int // slots of claims under way

	pace        pace
	head        headState
	prefetch    prefetch
	emptyClaims int       // looks in a row that found something due and could not claim it
	leasesAt    time.Time // no lease needs a look before; zero: none at all
	batchAt     time.Time // when settlements that wait for company go out; zero: none wait
	clock       clock     // of the source, as it was last told
	timer       *time.Timer
	timerAt     time.Time // when timer sends its tick; zero: it does not

	// unavailable: Redis is down, and nothing is sent but what the supervisor
	// asks for. probing: it asked for this one.
	unavailable, probing bool

	override                       ClusterOverride // as it was last read
	overrideKnown                  bool
	overrideFailures               int
	overrideReading, overrideStale bool      // of the order
	claimsSuspended                bool      // another was given: nothing is claimed until it is read
	overrideAt                     time.Time // when to read it again; zero: never

	collectingOrphans bool
	orphansAt         time.Time
	drain             *drain // nil: not draining
}

// Messages of a poller to itself carry the epoch of the incarnation that they
// are meant for: mail survives a restart.
type (
	tick             struct{ incarnation uint64 }
	completed        struct{ incarnation uint64 }
	handlerRestarted struct{ incarnation uint64 } // a crashed handler was restarted
	orphansCollected struct {
		incarnation uint64
		removed     int
		err         error
	}
)

// Props makes the poller of a topic.
func Props(t *Shared) *actor.Props {
	options := append([]actor.PropsOption{
		actor.WithSupervisor(host.RestartHandler.WithRandom(t.random)),
		actor.WithReceiverMiddleware(host.LogCrashes(t.Logger)),
	}, t.props...)
	return actor.PropsFromProducer(func() actor.Actor {
		return &poller{Shared: t, incarnation: uint64(t.Counters.incarnations.Add(1))}
	}, options...)
}

// Receive ends what this incarnation owns as soon as it panics: until its
// restart, which comes after a delay, nobody would watch over its leases.
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
		// Mail goes on coming while the handlers stop.
		if p.queue != nil && p.receive(c.Message(), c.Sender()) {
			p.pump(c, time.Now())
		}
	}
	sound = true
}

// take reports whether the message was for this incarnation.
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
	case handlerRestarted:
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
	case CheckHealth:
		p.checkHealth(m)
		return false // nothing has changed
	case SettingsChanged:
		p.applySettings()
	case Hold:
		p.unavailable = true
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
	p.pace = pace{random: p.random}
	p.pace.pollWithin(time.Now(), 0)
	p.applySettings()
	p.readOverride()
	p.root.Send(p.parent, Started{p.self})
}

// tune takes the settings that are in force, at the start and whenever they
// have changed. What runs already runs on under the ones it began with, but
// for the lease, whose next extension is as long as they say.
func (p *poller) applySettings() {
	state, wasPaused := p.State.Load(), p.paused
	p.Settings = state.Settings
	if p.override.Apply != nil {
		p.override.Apply(&p.Settings)
	}
	p.paused = state.Paused || p.override.Paused || (p.ReadOverride != nil && !p.overrideKnown)
	if wasPaused && !p.paused {
		p.pace.pollWithin(time.Now(), 0)
	}
	p.pace.base, p.pace.limit = p.PollingInterval, p.MaxPollingInterval
	p.leasesAt = time.Now()
	p.openStreams()
}

// openStreams opens as many streams as what may be claimed is worth.
func (p *poller) openStreams() {
	for len(p.streams) < streamsFor(p.MaxConcurrent+p.prefetch.limit) {
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

// newIncarnation names a life of a poller among all pollers of all nodes.
func newStreamIncarnation() string { return rand.Text() }

// stop ends all that this incarnation owns. Its leases come back by expiry.
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
	p.queue = nil
}

// hinted looks sooner than planned. Nothing in a hint is believed beyond that.
func (p *poller) handleHint(h exchange.Hint) {
	switch h.Kind {
	case exchange.HintDue:
		p.pace.handleHint(time.Now(), max(h.In, 0), h.Sent)
	case exchange.HintSubscribed:
		p.pace.pollWithin(time.Now(), time.Duration(float64(subscribedJitter)*p.random()))
		p.readOverride()
		if p.Target != nil { // a cancel may have been missed, and no heartbeat finds out
			p.verifyLeases("")
		}
	case exchange.HintControl:
		p.readOverride()
		p.claimsSuspended = p.overrideReading
	case exchange.HintCheck:
		p.verifyLeases(h.ID)
	}
}

// check has leases of a timer, or of all, verified by an extension at once.
func (p *poller) verifyLeases(id string) {
	for _, s := range p.streams {
		for _, l := range s.held {
			if id == "" || id == l.ID {
				l.verify, s.extendDue = true, true
			}
		}
	}
}

// subscribedSpread keeps thousands of topics from looking at once when their
// common subscription is back.
const subscribedJitter = 100 * time.Millisecond

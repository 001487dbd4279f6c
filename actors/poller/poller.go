// Package poller has the actors that deliver the timers of a topic: a poller that
// owns the leases, and the handler actors that run user code. It declares the
// [Source] that it consumes. It makes no compatibility promise.
//
// What a poller decides is decided by package leasing, which has no clock, no goroutine and
// no actor. This package acts: it receives messages and makes events of them (poller.go),
// does what the core wants done (effects.go), calls the source (wire.go), runs handlers
// (runqueue.go, handler.go, lease.go, batch.go), delivers to actors (forward.go,
// forward_batch.go), and tells operators (observer.go, breaker.go). What users give and get
// is in topic.go and delivery.go, and what the poller consumes in protocol.go.
package poller

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// poller is the actor that owns the leases of a topic: it claims them over its
// streams, passes them to handlers and settles them with the handlers' outcomes.
// All of its state is accessed in Receive only.
type poller struct {
	*Shared
	core        *leasing.Core // decides; nil before the start
	incarnation uint64        // messages of earlier incarnations are dropped

	self, parent *actor.PID
	root         *actor.RootContext

	queue    *runQueue // nil: the poller has stopped
	handlers []*actor.PID
	wires    []*wire                 // of the streams of the core
	endWatch func() (next time.Time) // ends the last watch
	timer    *time.Timer
	clock    clock      // the source's clock at its last reply
	drainer  *actor.PID // requested the drain; nil: not draining
}

// A message that a poller sends to itself carries its incarnation, because
// mailboxes outlive a restart.
type (
	tick             struct{ incarnation uint64 }
	completed        struct{ incarnation uint64 }
	shareFree        struct{ incarnation uint64 } // a place of the group is free
	handlerRestarted struct{ incarnation uint64 } // a crashed handler was restarted
	workerNeeded     struct{ incarnation uint64 } // there is a lease that no worker takes
	// overrideRead brings the override that was read.
	overrideRead struct {
		incarnation uint64
		override    ClusterOverride
		err         error
	}
	// announced is the answer to an announcement.
	announced struct {
		incarnation uint64
		action      exchange.AnnounceAction
		sent        time.Time
		answer      exchange.Announced
		err         error
	}
	// reported is the end of a report.
	reported struct {
		incarnation uint64
		err         error
	}
	orphansRemoved struct {
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

// Receive passes a message to the core as an event and then lets it advance.
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
		p.start(c, time.Now())
		p.advance(c, time.Now())
	case *actor.Stopping, *actor.Restarting:
		p.stop()
	default:
		// Messages still arrive while the handlers stop.
		if p.queue != nil && p.receive(c.Message(), c.Sender(), time.Now()) {
			p.advance(c, time.Now())
		}
	}
	sound = true
}

// receive makes an event of a message. It reports whether there was one.
func (p *poller) receive(message any, sender *actor.PID, now time.Time) bool {
	if !p.concerns(message) {
		return false
	}
	switch m := message.(type) {
	case tick:
		p.core.Tick()
	case exchanged:
		p.exchangeAnswered(m, now)
	case peeked:
		p.peekAnswered(m, now)
	case completed:
		p.collect(now)
	case shareFree, handlerRestarted, workerNeeded: // the core looks again
	case settleNow:
		p.settleNow(m, now)
	case extendNow:
		p.extendNow(m)
	case heldNow:
		return p.heldNow(m)
	case replaced:
		return m.note()
	case overrideRead:
		p.overrideRead(m, now)
	case announced:
		p.announcementAnswered(m, now)
	case reported:
		p.reportEnded(m)
	case orphansRemoved:
		p.orphansRemoved(m)
	case exchange.Hint:
		p.core.Hint(now, m)
	case CheckHealth:
		p.checkHealth(m, now)
		return false // nothing has changed
	case SettingsChanged:
		state := p.State.Load()
		p.core.Apply(now, state.Settings, state.Paused)
	case Hold:
		p.core.Hold(now)
	case Probe:
		p.core.Probe()
	case Resume:
		p.core.Resume(now, m.Within)
	case *messages.Drain:
		if p.drainer == nil {
			p.drainer = sender
		}
		p.core.Drain(now, m.GetTimeout().AsDuration())
	default:
		return false
	}
	return true
}

// concerns reports whether a message is for this incarnation.
func (p *poller) concerns(message any) bool {
	switch m := message.(type) {
	case tick:
		return m.incarnation == p.incarnation
	case exchanged:
		return m.incarnation == p.incarnation
	case peeked:
		return m.incarnation == p.incarnation
	case completed:
		return m.incarnation == p.incarnation
	case shareFree:
		return m.incarnation == p.incarnation
	case handlerRestarted:
		return m.incarnation == p.incarnation
	case workerNeeded:
		return m.incarnation == p.incarnation
	case overrideRead:
		return m.incarnation == p.incarnation
	case announced:
		return m.incarnation == p.incarnation
	case reported:
		return m.incarnation == p.incarnation
	case orphansRemoved:
		return m.incarnation == p.incarnation
	case interface{ of() *runQueue }: // the context of a lease of an earlier incarnation has ended
		return m.of() == p.queue
	default:
		return true
	}
}

func (p *poller) start(c actor.Context, now time.Time) {
	p.self, p.parent, p.root = c.Self(), c.Parent(), c.ActorSystem().Root
	p.queue = newRunQueue(p.root, p.self, p.incarnation)
	p.queue.attachment, p.queue.feed = p.Attachment, &p.Feed
	if p.queue.forwards = p.Target != nil; p.Batch.Size > 0 {
		p.queue.formBatches(p.Batch.Size)
	}
	toPoller, free := p.queue.toPoller, shareFree{p.incarnation}
	_, peeks := p.Source.(Peeker)
	cfg := leasing.Config{
		Policy: &p.Policy, Effects: effects{p}, Counters: &p.Counters, Guards: &p.guards,
		Random: p.random, NewName: newStreamName, Wake: func() { toPoller(free) },
		Forwards: p.Target != nil, Peeks: peeks, Snoozes: snoozes(p.Source), Overrides: p.ReadOverride != nil,
		Reports: p.Reporter != nil && p.Node != "", Topic: p.Source.Name(),
	}
	if p.Announcer != nil {
		cfg.Node = p.Node
	}
	state := p.State.Load()
	p.core = leasing.New(cfg)
	p.core.Start(now, state.Settings, state.Paused)
	p.root.Send(p.parent, Started{p.self})
}

// advance lets the core do what has become possible, and sets the timer for its next tick.
func (p *poller) advance(c actor.Context, now time.Time) {
	wake := p.core.Advance(now)
	p.spawnHandlers(c)
	switch {
	case wake.IsZero():
	case p.timer == nil:
		root, self, incarnation := p.root, p.self, p.incarnation
		p.timer = time.AfterFunc(wake.Sub(now), func() { root.Send(self, tick{incarnation}) })
	default:
		p.timer.Reset(wake.Sub(now))
	}
}

// spawnHandlers spawns handlers while there are leases that no handler takes soon.
func (p *poller) spawnHandlers(c actor.Context) {
	for len(p.handlers) < p.core.Concurrency() && p.lacksHandler() {
		pid, err := c.SpawnNamed(handlerProps(p.queue, p.Shared, p.self), handlerName(len(p.handlers)))
		if err != nil { // the name is taken; the next incarnation starts without children
			panic(err)
		}
		p.handlers = append(p.handlers, pid)
		p.queue.workerStarts()
	}
}

// lacksHandler reports whether another handler could begin a lease. Of batches there may be
// as many as leases, as far as it is known here.
func (p *poller) lacksHandler() bool {
	if p.HandleBatch == nil {
		return p.queue.lacksWorker()
	}
	return len(p.handlers) < int(p.queue.restarting.Load())+p.core.Leases()-p.core.Kept()
}

// stop ends everything that this incarnation owns. Its leases expire.
func (p *poller) stop() {
	if p.queue == nil {
		return
	}
	p.queue.stop()
	for _, w := range p.wires {
		close(w.requests)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.core != nil {
		p.core.Stop()
	}
	p.Counters.Held.Store(0)
	p.queue = nil
}

// collect takes the outcomes that have arrived.
func (p *poller) collect(now time.Time) {
	done := p.queue.takeDone()
	for _, c := range done {
		p.core.Finished(now, &c.lease.core, leasing.Outcome(c.outcome))
	}
	clear(done) // the array is used again, and would hold the payloads until then
}

// overrideRead passes the override on. One that cannot be read changes nothing.
func (p *poller) overrideRead(m overrideRead, now time.Time) {
	if m.err != nil && !errors.Is(m.err, exchange.ErrUnavailable) {
		p.Logger.Warn("override not readable; settings stay as they are", "err", m.err)
	}
	p.core.OverrideRead(now, m.override, m.err)
}

// announcementAnswered passes the answer to an announcement on.
func (p *poller) announcementAnswered(m announced, now time.Time) {
	if m.err != nil && !errors.Is(m.err, context.Canceled) { // the poller does not end
		p.Counters.Errors.Add(1)
		if skipped, ok := p.logLimit.Allow("announce " + p.Source.Name()); ok {
			p.Logger.Warn("announcement failed; this node polls without regard to others", "err", m.err, "skipped", skipped)
		}
	}
	p.core.Announced(now, m.sent, m.action, m.answer, m.err)
}

// reportEnded notes that a report has been stored, or failed: the next one will be.
func (p *poller) reportEnded(m reported) {
	p.core.Reported()
	if m.err == nil || errors.Is(m.err, context.Canceled) { // the poller ends
		return
	}
	if skipped, ok := p.logLimit.Allow("report " + p.Source.Name()); ok {
		p.Logger.Warn("report of this node not stored; operators do not see its state", "err", m.err, "skipped", skipped)
	}
}

func (p *poller) orphansRemoved(m orphansRemoved) {
	p.core.OrphansRemoved(m.swept, m.err)
	if m.err != nil {
		p.Logger.Warn("orphans not removed; retried later", "err", m.err)
		return
	}
	if m.swept.Removed > 0 {
		p.Logger.Info("orphans removed", "count", m.swept.Removed)
	}
	if m.swept.Mended > 0 {
		p.Logger.Warn("deadlines of messages were lost; these messages are delivered again", "count", m.swept.Mended)
	}
	if m.swept.Held > 0 { // repeated about every minute
		p.Logger.Error("timers were lost; their payloads stay; wakebell repair shows what can be restored",
			"key", m.swept.Key, "count", m.swept.Held, "payloads", m.swept.Of)
	}
}

func (p *poller) checkHealth(m CheckHealth, now time.Time) {
	h := p.core.Health(now)
	v := Health{
		Topic: p.Source.Name(), Paused: h.Paused, Draining: h.Draining, Leases: h.Leases, Failures: h.Failures, Err: h.Err,
		Role: h.Role, State: p.Describe(),
	}
	if p.guards.Limiter != nil {
		v.Concurrency = p.core.Concurrency()
	}
	select {
	case m.Answer <- v:
	default: // the caller no longer waits
	}
}

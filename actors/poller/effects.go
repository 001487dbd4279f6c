package poller

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/wakebell/wakebell/actors/division"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// effects does what the core of a poller wants done. What it observes is in observer.go.
type effects struct{ *poller }

var _ leasing.Effects = effects{}

// newStreamName returns a name that is unique among all pollers of all nodes.
func newStreamName() string { return rand.Text() }

// Open makes the wire of a stream.
func (p effects) Open(int) {
	p.wires = append(p.wires, &wire{
		source: p.Source, incarnation: p.incarnation, requests: make(chan *leasing.Flight, 1), toPoller: p.queue.toPoller,
	})
}

// Send passes a flight to its wire.
func (p effects) Send(f *leasing.Flight) { p.wires[f.Stream()].send(p.queue.ctx, f, p.begin) }

// Watch has the source peek on its own, and begins no goroutine.
func (p effects) Watch(w *leasing.Watch) {
	for _, wire := range p.wires {
		wire.rest()
	}
	counters, tell, incarnation := &p.Counters, p.queue.toPoller, p.incarnation
	p.endWatch = p.Source.(Peeker).Watch(p.queue.ctx, func(sent time.Time, answer exchange.PeekReply, err error) (next time.Time, ok bool) {
		received := time.Now()
		if err == nil {
			counters.Peeks.Add(1)
			counters.LastExchange.Store(received.UnixNano())
			if next, ok = w.Answered(sent, answer); ok {
				return next, true
			}
		}
		tell(peeked{incarnation: incarnation, watch: w, sent: sent, answer: answer, err: err, received: received})
		return next, false
	})
}

// EndWatch ends what Watch began.
func (p effects) EndWatch() (next time.Time) { return p.endWatch() }

// begin runs a wire on a goroutine that the dispatcher keeps, whose stack has grown before.
func (p effects) begin(serve func()) {
	p.io.Add(1)
	p.dispatcher.Schedule(func() {
		defer p.io.Done()
		serve()
	})
}

// ReadOverride reads the override in the background.
func (p effects) ReadOverride() {
	ctx, read, tell, incarnation := p.queue.ctx, p.Topic.ReadOverride, p.queue.toPoller, p.incarnation
	p.io.Add(1)
	p.calls.Go(p.Source.Shard(), func() {
		defer p.io.Done()
		override, err := host.Recovered("reading the override", func() (ClusterOverride, error) { return read(ctx) })
		tell(overrideRead{incarnation: incarnation, override: override, err: err})
	})
}

// announceTimeout bounds an announcement, because a drain waits for the last one. It is not ended
// by the end of the incarnation too: a context that has had a child keeps a map of 250 bytes, in
// each idle topic.
const announceTimeout = time.Second

// Announce sends an announcement in the background.
func (p effects) Announce(action exchange.AnnounceAction) {
	ctx, tell, announcer, incarnation, sent := p.queue.ctx, p.queue.toPoller, p.Announcer, p.incarnation, time.Now()
	a := exchange.Announcement{Action: action, Node: p.Node, Lease: division.Lease}
	p.io.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
		defer cancel()
		answer, err := host.Recovered("announcing", func() (exchange.Announced, error) { return announcer.Announce(ctx, a) })
		tell(announced{incarnation: incarnation, action: action, sent: sent, answer: answer, err: err})
	})
}

// AskForHelp asks other nodes in the background. Without help they claim when their delay
// has passed.
func (p effects) AskForHelp(rank int) {
	ctx, announcer, log := p.queue.ctx, p.Announcer, p.Logger
	p.io.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, announceTimeout)
		defer cancel()
		if err := announcer.AskForHelp(ctx, rank); err != nil {
			log.Debug("asking for help failed", "err", err)
		}
	})
}

// reportTimeout bounds a report as announceTimeout does an announcement.
const reportTimeout = time.Second

// Report stores the state of this node in the background, for three intervals, or removes it.
func (p effects) Report(withdraw bool) {
	life, state := 3*p.ReportEvery(), p.Feed.State()
	if withdraw {
		life = 0
	}
	ctx, tell, reporter, node, incarnation := p.queue.ctx, p.queue.toPoller, p.Reporter, p.Node, p.incarnation
	p.io.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		_, err := host.Recovered("reporting", func() (struct{}, error) { return struct{}{}, reporter.Report(ctx, node, state, life) })
		tell(reported{incarnation, err})
	})
}

// RemoveOrphans removes orphans in the background.
func (p effects) RemoveOrphans() {
	ctx, source, tell, incarnation := p.queue.ctx, p.Source, p.queue.toPoller, p.incarnation
	p.io.Go(func() {
		swept, err := host.Recovered("removing orphans", func() (exchange.Swept, error) { return source.RemoveOrphans(ctx) })
		tell(orphansRemoved{incarnation: incarnation, swept: swept, err: err})
	})
}

// Tell reports to the supervisor.
func (p effects) Tell(a leasing.Availability, err error) {
	shard := p.Source.Shard()
	switch a {
	case leasing.Available:
		p.root.Send(p.parent, Available{shard})
	case leasing.Unavailable:
		p.root.Send(p.parent, Unavailable{shard, err})
	case leasing.Unprobed:
		p.root.Send(p.parent, Unprobed{shard})
	}
}

// Drained answers the drain.
func (p effects) Drained(unfinished []string, unsettled int) {
	p.root.Send(p.drainer, &messages.TopicDrained{Topic: p.Source.Name(), Unfinished: unfinished, Unsettled: uint32(unsettled)})
}

// NewLease makes a lease with the context of its handler.
func (p effects) NewLease(claimed *exchange.Lease, at time.Time) *leasing.Lease {
	l := &lease{Delivery: Delivery{
		Lease: *claimed, Topic: p.Name(), Claimed: at, LeaseTTL: p.core.LeaseTTL, MaxFailures: p.core.Retry.MaxFailures,
	}, queue: p.queue}
	l.lease, l.ctx.parent = l, p.queue.ctx
	l.core.Lease, l.core.Run = &l.Lease, l
	return &l.core
}

// Push gives a lease to the next free worker.
func (p effects) Push(claimed *leasing.Lease) {
	l := claimed.Run.(*lease)
	l.Claimed = l.Activation.Add(claimed.Late)
	if p.Feed.Collects() {
		p.emitDelivered(l)
	}
	p.queue.push(l)
}

// Pushed ends a series of leases.
func (p effects) Pushed(leases int) {
	p.queue.pushed()
	if !p.Feed.Collects() {
		p.Feed.Miss(leases)
	}
}

// TakeBack takes leases back that no worker has begun.
func (p effects) TakeBack(n int) []*leasing.Lease {
	unstarted := p.queue.takeLast(n)
	leases := make([]*leasing.Lease, len(unstarted))
	for i, l := range unstarted {
		leases[i] = &l.core
	}
	return leases
}

// Oldest is when the first lease that no worker has begun was pushed.
func (p effects) Oldest() time.Time { return p.queue.oldestQueued() }

// Occupied is the number of slots that no worker can use now.
func (p effects) Occupied() int {
	return p.queue.vacant() + max(p.Batch.Size, 1)*int(p.queue.restarting.Load())
}

// Tune sets how many workers may run at once.
func (p effects) Tune(concurrency int, batchWait time.Duration) {
	p.queue.tune(concurrency, batchWait)
}

package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Reporter stores the state of a node for a topic, where operators read it without asking
// the node. A life of 0 removes it.
type Reporter interface {
	Report(ctx context.Context, node string, state wakebelltype.NodeState, life time.Duration) error
}

const (
	// reportEvery is how often a node repeats its report, and reportLife for how long it is
	// valid.
	reportEvery = 30 * time.Second
	reportLife  = 3 * reportEvery
	// reportPause is how long a change of what changes often waits for others.
	reportPause = 5 * time.Second
	// reportTimeout bounds a report, because a drain waits for the last one.
	reportTimeout = time.Second
)

// reports is the state of the reports of one incarnation of a poller.
type reports struct {
	sending bool
	last    time.Time // when the last one was sent; zero: none was
	told    told
	at      time.Time // next: when to send one; zero: after the next event
}

// told is what the last report had of what changes.
type told struct {
	breaker     *breakerStatus
	concurrency int
	flow        exchange.Flow
	withdrawn   bool
}

// reported is the end of a report.
type reported struct {
	incarnation uint64
	err         error
}

// mayReport reports whether the topic has something that operators want to know: a
// circuit breaker, adaptive concurrency, a group, or limits over all nodes.
func (p *poller) mayReport() bool {
	return p.Reporter != nil && p.Node != "" &&
		(p.breaker != nil || p.limiter != nil || p.Group != nil || p.Flow.On() || p.Flow.ByKey())
}

// report sends the report that is due, and none for each delivery: a change of the breaker
// at once, others at intervals. A drain removes it.
func (p *poller) report(now time.Time) {
	r := &p.reports
	r.at = time.Time{}
	is := told{breaker: p.breakerNow.Load(), concurrency: p.concurrency, flow: p.Flow, withdrawn: p.drain != nil}
	if !p.mayReport() {
		is.withdrawn = true
	}
	if p.unavailable || r.sending || is.withdrawn && (r.last.IsZero() || r.told.withdrawn) {
		return
	}
	switch {
	case r.last.IsZero(), is.breaker != r.told.breaker, is.withdrawn != r.told.withdrawn:
		r.at = now
	case is != r.told:
		r.at = r.last.Add(reportPause)
	default:
		r.at = r.last.Add(reportEvery)
	}
	if now.Before(r.at) {
		return
	}
	r.sending, r.last, r.told, r.at = true, now, is, time.Time{}
	life, state := reportLife, p.Feed.State()
	if is.withdrawn {
		life = 0
	}
	ctx, tell, reporter, node, incarnation := p.queue.ctx, p.queue.toPoller, p.Reporter, p.Node, p.incarnation
	p.io.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, reportTimeout)
		defer cancel()
		_, err := host.Recovered("reporting", func() (struct{}, error) { return struct{}{}, reporter.Report(ctx, node, state, life) })
		tell(reported{incarnation, err})
	})
}

// reportEnded notes that a report has been stored, or failed: the next one will be.
func (p *poller) reportEnded(m reported) {
	p.reports.sending = false
	if m.err == nil || errors.Is(m.err, context.Canceled) { // the poller ends
		return
	}
	if skipped, ok := p.logLimit.Allow("report " + p.Source.Name()); ok {
		p.Logger.Warn("report of this node not stored; operators do not see its state", "err", m.err, "skipped", skipped)
	}
}

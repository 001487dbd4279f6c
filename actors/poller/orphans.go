package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
)

// orphansEvery is the minimum interval between two collections in a topic.
const orphansEvery = time.Minute

// collectOrphans removes, in the background, the remains of timers that no longer
// exist.
func (p *poller) collectOrphans() {
	if p.collectingOrphans || time.Since(p.orphansAt) < orphansEvery {
		return
	}
	p.collectingOrphans, p.orphansAt = true, time.Now()
	ctx, source, tell, incarnation := p.queue.ctx, p.Source, p.queue.toPoller, p.incarnation
	p.io.Go(func() {
		removed, err := host.Recovered("heal", func() (int, error) { return source.RemoveOrphans(ctx) })
		tell(orphansCollected{incarnation: incarnation, removed: removed, err: err})
	})
}

func (p *poller) orphansCollected(m orphansCollected) {
	p.collectingOrphans = false
	p.Counters.orphansRemoved.Add(int64(m.removed))
	switch {
	case m.err != nil:
		p.Logger.Warn("orphans not removed; retried later", "err", m.err)
	case m.removed > 0:
		p.Logger.Info("orphans removed", "count", m.removed)
	}
}

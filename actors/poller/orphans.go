package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
)

// healEvery bounds how often a topic is swept, whatever is found.
const orphansEvery = time.Minute

// heal removes, in the background, what is left of timers that are gone.
func (p *poller) collectOrphans() {
	if p.collectingOrphans || time.Since(p.orphansAt) < orphansEvery {
		return
	}
	p.collectingOrphans, p.orphansAt = true, time.Now()
	ctx, source, tell, incarnation := p.queue.ctx, p.Source, p.queue.toPoller, p.incarnation
	p.io.Go(func() {
		removed, err := host.Recovered("heal", func() (int, error) { return source.Heal(ctx) })
		tell(orphansCollected{incarnation: incarnation, removed: removed, err: err})
	})
}

func (p *poller) orphansCollected(m orphansCollected) {
	p.collectingOrphans = false
	p.Counters.orphansRemoved.Add(int64(m.removed))
	switch {
	case m.err != nil:
		p.Logger.Warn("healing failed; tried again later", "err", m.err)
	case m.removed > 0:
		p.Logger.Info("removed entries without a timer", "count", m.removed)
	}
}

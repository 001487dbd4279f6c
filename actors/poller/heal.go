package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
)

// healEvery bounds how often a topic is swept, whatever is found.
const healEvery = time.Minute

// heal removes, in the background, what is left of timers that are gone.
func (p *poller) heal() {
	if p.healing || time.Since(p.healedAt) < healEvery {
		return
	}
	p.healing, p.healedAt = true, time.Now()
	ctx, source, tell, epoch := p.run.ctx, p.Source, p.run.tell, p.epoch
	p.io.Go(func() {
		removed, err := host.Safely("heal", func() (int, error) { return source.Heal(ctx) })
		tell(healed{epoch: epoch, removed: removed, err: err})
	})
}

func (p *poller) healed(m healed) {
	p.healing = false
	p.Counters.healed.Add(int64(m.removed))
	switch {
	case m.err != nil:
		p.Logger.Warn("healing failed; tried again later", "err", m.err)
	case m.removed > 0:
		p.Logger.Info("removed entries without a timer", "count", m.removed)
	}
}

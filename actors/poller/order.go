package poller

import (
	"cmp"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Order is what operators ordered of a topic, for all nodes that handle it.
type Order struct {
	Paused bool // take no timers
	// Override changes the settings of the node; nil: it does not.
	Override func(*Settings)
}

// ordered brings what was read to the poller.
type ordered struct {
	epoch uint64
	order Order
	err   error
}

// readOrderEvery is the default of Topic.OrderEvery.
const readOrderEvery = 5 * time.Minute

// readOrder reads what is ordered, in the background. Until it is known for the
// first time nothing is claimed, for the topic may be paused.
func (p *poller) readOrder() {
	if p.Order == nil {
		return
	}
	if p.unavailable { // it is read when Redis is back
		p.orderAt = time.Now()
		return
	}
	p.orderAt = time.Now().Add(host.Spread(cmp.Or(p.OrderEvery, readOrderEvery), 0.5, p.random()))
	if p.reading {
		p.readAgain = true // what is being read may be from before
		return
	}
	p.reading, p.readAgain = true, false
	ctx, read, tell, epoch := p.run.ctx, p.Order, p.run.tell, p.epoch
	p.io.Go(func() {
		order, err := host.Safely("reading what is ordered", func() (Order, error) { return read(ctx) })
		tell(ordered{epoch: epoch, order: order, err: err})
	})
}

// obey takes what was read. What cannot be read changes nothing; where Redis is
// down, it is read again when it is back.
func (p *poller) obey(m ordered) {
	p.reading = false
	switch {
	case m.err == nil:
		p.order, p.orderKnown, p.orderFailures = m.order, true, 0
	case errors.Is(m.err, exchange.ErrUnavailable):
		p.orderFailures++
		p.orderAt = time.Now().Add(host.Spread(host.Doubled(time.Second, p.orderFailures, maxErrorDelay), 0.5, p.random()))
		p.down(m.err)
	default:
		p.orderKnown = true
		p.Logger.Warn("what is ordered of the topic cannot be read; it goes on as before", "err", m.err)
	}
	p.tune()
	if p.readAgain {
		p.readOrder()
	}
	if p.hushed && !p.reading {
		p.hushed = false
		p.pace.soon(time.Now(), 0)
	}
}

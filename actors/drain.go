package actors

import (
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

const (
	// gatewayGrace is how long the gateway may take to finish what it has.
	gatewayGrace = time.Second
	// drainGrace is how long handlers may take to return once their contexts
	// have ended with ErrDraining.
	drainGrace = time.Second
	// drainFlush is how long the last settlements may take after that.
	drainFlush = 2 * time.Second
)

// drain is the state of a poller that takes no more leases. Its phases end
// with the deadline, then with drainGrace, then with drainFlush, or as soon
// as nothing is held and nothing is left to settle.
type drain struct {
	requester  *actor.PID
	timer      *time.Timer
	unfinished []string // ids whose handlers did not return in time
	reported   bool
}

// endDrain ends a phase of a drain.
type endDrain struct {
	epoch uint64
	phase int
}

const (
	phaseRun   = iota // handlers run
	phaseGrace        // their contexts have ended
	phaseFlush        // they were left; settlements are on their way
)

func (p *poller) startDrain(m *messages.Drain, requester *actor.PID) {
	if p.drain != nil {
		if p.drain.reported { // as when a topic is removed after a drain
			p.drain.reported = false
			p.reportDrain()
		}
		return
	}
	p.drain = &drain{requester: requester}
	p.nextPhase(phaseRun, m.GetTimeout().AsDuration())
	p.giveBack(math.MaxInt) // what no handler has begun goes back at once
}

func (p *poller) nextPhase(phase int, after time.Duration) {
	root, self, end := p.root, p.self, endDrain{p.epoch, phase}
	p.drain.timer = time.AfterFunc(after, func() { root.Send(self, end) })
}

func (p *poller) endDrain(m endDrain) {
	switch m.phase {
	case phaseRun:
		for _, s := range p.streams {
			for _, l := range s.held {
				l.end(ErrDraining)
			}
		}
		p.nextPhase(phaseGrace, drainGrace)
	case phaseGrace:
		p.leaveUnfinished()
		p.nextPhase(phaseFlush, drainFlush)
	case phaseFlush:
		p.reportDrain()
	}
}

// leaveUnfinished gives up the handlers that ignore their contexts: their
// timers are released for another node, and named.
func (p *poller) leaveUnfinished() {
	for _, s := range p.streams {
		for len(s.held) > 0 {
			l := s.held[0]
			s.drop(l)
			if l.gone == 0 && !l.settled {
				p.release(l)
			}
			p.drain.unfinished = append(p.drain.unfinished, l.ID)
			p.Logger.Error("handler ignores its context and is left behind", "id", l.ID)
		}
	}
}

// finishDrain reports as soon as there is nothing left to do.
func (p *poller) finishDrain() {
	if p.drain == nil {
		return
	}
	for _, s := range p.streams {
		if s.busy() || len(s.held) > 0 || len(s.settle) > 0 {
			return
		}
	}
	p.reportDrain()
}

func (p *poller) reportDrain() {
	d := p.drain
	if d.reported {
		return
	}
	d.reported = true
	d.timer.Stop()
	result := &messages.TopicDrained{Topic: p.Source.Name(), Unfinished: d.unfinished}
	for _, s := range p.streams {
		result.Unsettled += uint32(len(s.settle)) //nolint:gosec // bounded by the slots
		if s.flight != nil {
			result.Unsettled += uint32(len(s.flight.settling)) //nolint:gosec // bounded by maxSettle
		}
	}
	p.root.Send(d.requester, result)
}

package poller

import (
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// drain is the state of a poller that takes no more leases. Its phases end
// with the deadline, then with DrainGrace, then with DrainFlush, or as soon
// as nothing is held and nothing is left to settle. A poller that only waits for
// the answer to a claim does so for DrainFlush: while the source is down there
// is none.
type drain struct {
	requester  *actor.PID
	phase      int
	timer      *time.Timer // ends the phase
	unfinished []string    // ids whose handlers did not return in time
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
	p.drain.phase = phase
	p.drain.timer = time.AfterFunc(after, func() { root.Send(self, end) })
}

func (p *poller) endDrain(m endDrain) {
	if m.phase != p.drain.phase {
		return // another one had begun when it came
	}
	switch m.phase {
	case phaseRun:
		for _, s := range p.streams {
			for _, l := range s.held {
				l.end(ErrDraining)
			}
		}
		p.nextPhase(phaseGrace, DrainGrace)
	case phaseGrace:
		p.leaveUnfinished()
		p.nextPhase(phaseFlush, DrainFlush)
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
	if p.drain == nil || p.drain.reported {
		return
	}
	busy, inHand := false, false
	for _, s := range p.streams {
		busy = busy || s.busy()
		inHand = inHand || len(s.held) > 0 || len(s.settle) > 0 || s.flight != nil && len(s.flight.settling) > 0
	}
	switch {
	case inHand:
	case !busy:
		p.reportDrain()
	case p.drain.phase == phaseRun:
		p.drain.timer.Stop()
		p.nextPhase(phaseFlush, DrainFlush)
	}
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
		result.Unsettled += uint32(len(s.settle)) // bounded by the slots
		if s.flight != nil {
			result.Unsettled += uint32(len(s.flight.settling)) // bounded by maxSettle
		}
	}
	p.root.Send(d.requester, result)
}

// DrainGrace is how long handlers may take to return once their contexts
// have ended with ErrDraining.
const DrainGrace = time.Second

// DrainFlush is how long the last settlements may take after that, and how
// long an answer is waited for that may hold leases.
const DrainFlush = 2 * time.Second

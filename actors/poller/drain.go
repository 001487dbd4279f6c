package poller

import (
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// drain is the state of a poller that claims nothing more. Its phases end with
// the deadline, then with DrainGrace, then with DrainFlush, or as soon as no
// lease is held and no settlement is queued. A poller that only waits for the
// reply to a claim waits for DrainFlush: there is no reply while the source is
// down.
type drain struct {
	requester  *actor.PID
	phase      int
	timer      *time.Timer // ends the phase
	unfinished []string    // ids whose handlers did not return in time
	answered   bool
}

// endDrain ends a phase of a drain.
type endDrain struct {
	incarnation uint64
	phase       int
}

const (
	phaseRun   = iota // handlers run
	phaseGrace        // their contexts have ended
	phaseFlush        // they were abandoned; settlements are in flight
)

func (p *poller) startDrain(m *messages.Drain, requester *actor.PID) {
	if p.drain != nil {
		if p.drain.answered { // when a topic is removed after a drain
			p.drain.answered = false
			p.answerDrain()
		}
		return
	}
	p.drain = &drain{requester: requester}
	p.planAsk()
	p.nextPhase(phaseRun, m.GetTimeout().AsDuration())
	p.returnUnstarted(math.MaxInt) // leases that no handler has begun are released at once
}

func (p *poller) nextPhase(phase int, after time.Duration) {
	root, self, end := p.root, p.self, endDrain{p.incarnation, phase}
	p.drain.phase = phase
	p.drain.timer = time.AfterFunc(after, func() { root.Send(self, end) })
}

func (p *poller) endDrain(m endDrain) {
	if m.phase != p.drain.phase {
		return // the next phase had already begun
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
		p.abandonUnfinished()
		p.nextPhase(phaseFlush, DrainFlush)
	case phaseFlush:
		p.answerDrain()
	}
}

// abandonUnfinished gives up handlers that ignore their contexts: their timers
// are released for other nodes, and reported.
func (p *poller) abandonUnfinished() {
	for _, s := range p.streams {
		for len(s.held) > 0 {
			l := s.held[0]
			s.drop(l)
			if l.refused == 0 && !l.settled {
				p.releaseLease(l)
			}
			p.drain.unfinished = append(p.drain.unfinished, l.ID)
			p.Logger.Error("handler ignores its context and is abandoned", "id", l.ID)
		}
	}
}

// checkDrain ends the drain as soon as nothing is left to do.
func (p *poller) checkDrain() {
	if p.drain == nil || p.drain.answered {
		return
	}
	busy, inHand := p.announcing || p.reports.sending, false // others take over when they know that this node leaves
	for _, s := range p.streams {
		busy = busy || s.busy()
		inHand = inHand || len(s.held) > 0 || len(s.toSettle) > 0 || s.flight != nil && len(s.flight.settling) > 0
	}
	switch {
	case inHand:
	case !busy:
		p.answerDrain()
	case p.drain.phase == phaseRun:
		p.drain.timer.Stop()
		p.nextPhase(phaseFlush, DrainFlush)
	}
}

func (p *poller) answerDrain() {
	d := p.drain
	if d.answered {
		return
	}
	d.answered = true
	d.timer.Stop()
	result := &messages.TopicDrained{Topic: p.Source.Name(), Unfinished: d.unfinished}
	for _, s := range p.streams {
		result.Unsettled += uint32(len(s.toSettle))
		if s.flight != nil {
			result.Unsettled += uint32(len(s.flight.settling))
		}
	}
	p.root.Send(d.requester, result)
}

// DrainGrace is how long handlers may take to return once their contexts
// have ended with ErrDraining.
const DrainGrace = time.Second

// DrainFlush is how long the last settlements may take after that, and how long a
// drain waits for a reply that may contain leases.
const DrainFlush = 2 * time.Second

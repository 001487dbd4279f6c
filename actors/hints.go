package actors

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Subscribing again costs a subscription and a poll for each topic, so changes of
// the topics do it at most once per resubscribePause and resubscribePausePerTopic
// for every topic: a thousand changes cost no more than a few. Until then timers
// of a new topic are found by polling.
const (
	resubscribePause         = 50 * time.Millisecond
	resubscribePausePerTopic = 500 * time.Microsecond
)

// resubscription is the state of the changes that the subscription does not
// include yet.
type resubscription struct {
	notBefore time.Time   // when the next subscription may start
	pending   *time.Timer // nil: no change is pending
}

// resubscribeNow ends the pause.
type resubscribeNow struct{}

func (t *resubscription) stop() {
	if t.pending != nil {
		t.pending.Stop()
	}
}

// resubscribeSoon subscribes to the present topics: at once after a period
// without changes, otherwise after the pause.
func (s *supervisor) resubscribeSoon() {
	t := &s.resubscription
	wait := time.Until(t.notBefore)
	switch {
	case t.pending != nil || s.stopped:
	case wait <= 0:
		s.resubscribe()
	default:
		root, self := s.root, s.self
		t.pending = time.AfterFunc(wait, func() { root.Send(self, resubscribeNow{}) })
	}
}

func (s *supervisor) resubscribe() {
	s.resubscription.pending = nil
	s.resubscription.notBefore = time.Now().Add(resubscribePause + time.Duration(len(s.pollers))*resubscribePausePerTopic)
	s.subscribeHints()
}

// subscribeHints passes hints to the supervisor until it stops or subscribes
// again because its topics have changed. If hints are refused (a Redis user
// without rights on the channels), timers are found by polling.
func (s *supervisor) subscribeHints() {
	if s.stopHints != nil {
		s.stopHints()
	}
	if s.stopped {
		return
	}
	//nolint:forbidigo // the context lasts as long as the supervisor, which stop
	// ends
	ctx, cancel := context.WithCancel(context.Background())
	s.stopHints = cancel
	if s.rt.hints == nil {
		return
	}
	names := slices.Sorted(maps.Keys(s.pollers))
	root, self, hints, log := s.root, s.self, s.rt.hints, s.rt.env.Logger
	deliver := func(h exchange.Hint) {
		if ctx.Err() == nil { // otherwise no incarnation would read it
			root.Send(self, h)
		}
	}
	s.rt.env.IO.Go(func() {
		host.KeepSubscribed(ctx, "listening for hints",
			func() error { return hints.Listen(ctx, names, deliver) },
			func(err error) {
				log.Warn("hints refused; timers are found by polling", "err", err, "duration", host.ResubscribeDelay)
			})
	})
}

func (s *supervisor) hint(h exchange.Hint) {
	if h.Source == "" {
		s.broadcast(h)
		return
	}
	if h.Kind == exchange.HintTail {
		if t, ok := s.rt.topic(h.Source); ok {
			s.rt.tail.Watch(&t.Feed, h.In, h.Watched)
		}
		return
	}
	if pid, ok := s.pollers[h.Source]; ok {
		s.root.Send(pid, h)
	}
}

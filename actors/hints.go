package actors

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Listening anew costs a subscription and a look for each topic that there is,
// so a change of the topics does it at most once in listenPause and listenPauseEach
// for every topic: a thousand changes cost no more than a few. Until then timers of
// a new topic are found by polling.
const (
	resubscribePause         = 50 * time.Millisecond
	resubscribePausePerTopic = 500 * time.Microsecond
)

// topicsChanged is what a supervisor knows of the changes that it does not listen
// to yet.
type resubscription struct {
	notBefore time.Time   // when it may listen anew
	pending   *time.Timer // nil: no change waits
}

// listenAnew tells the supervisor that it may.
type resubscribeNow struct{}

func (t *resubscription) stop() {
	if t.pending != nil {
		t.pending.Stop()
	}
}

// listenSoon listens to the topics that there are now: at once after a while
// without changes, else after the pause.
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

// listen passes hints to the supervisor until it stops, or listens anew
// because its topics have changed. Where hints are refused (a user without
// channel rights) timers are found by polling.
func (s *supervisor) subscribeHints() {
	if s.stopHints != nil {
		s.stopHints()
	}
	if s.stopped {
		return
	}
	//nolint:forbidigo // the supervisor's life is its own: stop ends it
	ctx, cancel := context.WithCancel(context.Background())
	s.stopHints = cancel
	if s.rt.hints == nil {
		return
	}
	names := slices.Sorted(maps.Keys(s.pollers))
	root, self, hints, log := s.root, s.self, s.rt.hints, s.rt.env.Logger
	deliver := func(h exchange.Hint) {
		if ctx.Err() == nil { // else nobody is there to read it
			root.Send(self, h)
		}
	}
	s.rt.env.IO.Go(func() {
		for ctx.Err() == nil {
			_, err := host.Recovered("listening for hints", func() (struct{}, error) {
				return struct{}{}, hints.Listen(ctx, names, deliver)
			})
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return
			}
			log.Warn("no hints: timers due soon are found by polling", "err", err, "again_in", host.ResubscribeDelay)
			select {
			case <-ctx.Done():
			case <-time.After(host.ResubscribeDelay):
			}
		}
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

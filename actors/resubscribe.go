package actors

import "time"

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

package actors

import "time"

// Listening anew costs a subscription and a look for each topic that there is,
// so a change of the topics does it at most once in listenPause and listenPauseEach
// for every topic: a thousand changes cost no more than a few. Until then timers of
// a new topic are found by polling.
const (
	listenPause     = 50 * time.Millisecond
	listenPauseEach = 500 * time.Microsecond
)

// topicsChanged is what a supervisor knows of the changes that it does not listen
// to yet.
type topicsChanged struct {
	again   time.Time   // when it may listen anew
	pending *time.Timer // nil: no change waits
}

// listenAnew tells the supervisor that it may.
type listenAnew struct{}

func (t *topicsChanged) stop() {
	if t.pending != nil {
		t.pending.Stop()
	}
}

// listenSoon listens to the topics that there are now: at once after a while
// without changes, else after the pause.
func (s *supervisor) listenSoon() {
	t := &s.topicsChanged
	wait := time.Until(t.again)
	switch {
	case t.pending != nil || s.ended:
	case wait <= 0:
		s.listenAnew()
	default:
		root, self := s.root, s.self
		t.pending = time.AfterFunc(wait, func() { root.Send(self, listenAnew{}) })
	}
}

func (s *supervisor) listenAnew() {
	s.topicsChanged.pending = nil
	s.topicsChanged.again = time.Now().Add(listenPause + time.Duration(len(s.pollers))*listenPauseEach)
	s.listen()
}

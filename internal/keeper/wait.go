package keeper

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Waiting is what Wait needs to know of one timer. The functions read Redis.
type Waiting struct {
	ID string

	// Exists reports whether there is the timer.
	Exists func(context.Context) (bool, error)
	// Tail watches the events of the topic until yield returns false or the context ends.
	Tail func(ctx context.Context, yield func(wakebelltype.Event) bool) error
	// Remains says how a timer that does not exist has ended, by what it left: EndDone,
	// EndDead, or EndMissing if it left nothing.
	Remains func(context.Context) (Ended, error)
}

// Ended is how a timer has ended.
type Ended struct {
	End    wakebelltype.End
	Reason string // of a dead letter, or of one that expired
}

const (
	pollFirst = 250 * time.Millisecond
	pollMost  = 5 * time.Second
	// newsDelay is how late the event of a timer that is gone may arrive: nodes collect
	// events for 50 ms, after an answer of Redis.
	newsDelay = time.Second
)

// Wait waits until the timer has ended. Events make it look sooner than its polls, which are
// pollMost apart at last. The error is that of ctx, or of a function.
func (w Waiting) Wait(ctx context.Context) (Ended, error) {
	if exists, err := w.Exists(ctx); err != nil || !exists {
		return w.remains(ctx, err, nil)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	news := make(chan wakebelltype.Event, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Tail(watching, func(e wakebelltype.Event) bool { // polls replace it
			if e.ID != w.ID && e.ID != "" {
				return true
			}
			select {
			case news <- e:
				return true
			case <-watching.Done():
				return false
			}
		})
	}()
	defer func() { stop(); <-done }()
	return w.follow(ctx, news)
}

// follow looks after the timer on each event and poll.
func (w Waiting) follow(ctx context.Context, news <-chan wakebelltype.Event) (Ended, error) {
	poll, pause := time.NewTimer(pollFirst), pollFirst
	defer poll.Stop()
	var s sight
	for {
		var overdue bool
		select {
		case <-ctx.Done():
			return Ended{}, context.Cause(ctx)
		case e := <-news:
			if !s.hear(e) {
				continue
			}
		case <-poll.C:
			overdue = !s.gone.IsZero() // the news that explain it had their time
			pause = min(2*pause, pollMost)
		}
		exists, err := w.Exists(ctx)
		switch {
		case err != nil || !exists && (overdue || s.ended != nil):
			return w.remains(ctx, err, &s)
		case exists:
			s.ended, s.gone, s.seen = nil, time.Time{}, s.nodes // it may have been scheduled again
			poll.Reset(pause)
		default:
			s.gone = time.Now()
			poll.Reset(newsDelay)
		}
	}
}

// remains says how a timer that does not exist has ended; s is what was seen of it, nil:
// nothing.
func (w Waiting) remains(ctx context.Context, err error, s *sight) (Ended, error) {
	if err != nil {
		return Ended{}, err
	}
	if s != nil && s.ended != nil {
		return *s.ended, nil
	}
	left, err := w.Remains(ctx)
	if err == nil && left.End == wakebelltype.EndMissing && s != nil && s.seen && !s.gap {
		left.End = wakebelltype.EndCancelled
	}
	return left, err
}

// sight is what a wait has seen of a timer.
type sight struct {
	gone  time.Time // since when it does not exist; zero: it does
	ended *Ended    // by the last event
	nodes bool      // a node of the topic reports events
	seen  bool      // it existed while one did
	gap   bool      // events may have been missed
}

// hear notes an event, and reports whether the timer may have ended.
func (s *sight) hear(e wakebelltype.Event) bool {
	switch e.Kind {
	case wakebelltype.EventAttached:
		s.nodes, s.seen = false, false
	case wakebelltype.EventNode:
		s.nodes = true
		return true // to see the timer from now on
	case wakebelltype.EventMissed, wakebelltype.EventLeft:
		s.gap = true
	case wakebelltype.EventAcked:
		s.ended = &Ended{End: wakebelltype.EndDone}
	case wakebelltype.EventDead, wakebelltype.EventDiscarded:
		s.ended = &Ended{End: wakebelltype.EndDead, Reason: e.Text}
	case wakebelltype.EventExpired:
		s.ended = &Ended{End: wakebelltype.EndExpired, Reason: e.Text}
	case wakebelltype.EventCancelled:
		s.ended = &Ended{End: wakebelltype.EndCancelled}
	default:
		return false
	}
	return s.ended != nil && e.ID != ""
}

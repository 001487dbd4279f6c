package observe

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// announceDelay is how late the announcement of a watcher may arrive.
const announceDelay = time.Second

// EarlyFor is how long the first events of a topic are kept: a watcher that
// existed before the node announces itself twice within that time, and one of the
// announcements may be lost or late.
const EarlyFor = 2*exchange.AnnounceEvery + announceDelay

// MaxEarly bounds the events of a topic that are kept: a node may have thousands of busy
// topics. Further ones count as missed.
const MaxEarly = 20

// early keeps the first events of a topic until the watchers that existed before
// the node have announced themselves. The zero value keeps none.
type early struct {
	open   bool
	timer  *time.Timer // ends it; nil: no event yet
	events []earlyEvent
	missed int       // events that did not fit
	last   time.Time // when the last of them happened
}

type earlyEvent struct {
	wakebelltype.Event
	at time.Time // by the local clock
}

// KeepEarly makes the feed keep its first events.
func (f *Feed) KeepEarly() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.early.open = true
	f.updateWatched()
}

// addEarly keeps an event for a watcher that is not known yet.
func (f *Feed) addEarly(e wakebelltype.Event) {
	y, now := &f.early, time.Now()
	switch {
	case !y.open:
	case len(y.events) == MaxEarly:
		y.missed, y.last = y.missed+1, now
	default:
		y.events = append(y.events, earlyEvent{trimmed(e), now})
		f.updateWatched()
		if y.timer == nil {
			y.timer = time.AfterFunc(EarlyFor, f.dropEarly)
		}
	}
}

func (f *Feed) dropEarly() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.early = early{}
	f.updateWatched()
}

// recall queues the kept events for a watcher that has been subscribed for some time. How
// long its announcement took is not known, so there may be some from just before it
// subscribed.
func (f *Feed) recall(subscribed time.Duration) {
	since := time.Now().Add(-subscribed - announceDelay)
	kept := f.early.events[:0]
	for _, e := range f.early.events {
		if e.at.Before(since) {
			kept = append(kept, e)
		} else {
			f.pending = append(f.pending, e.Event)
		}
	}
	f.early.events = kept
	if f.early.missed > 0 && !f.early.last.Before(since) {
		f.missed, f.early.missed = f.missed+f.early.missed, 0
	}
}

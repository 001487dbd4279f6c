package exchange

import "time"

// HintKind says what a hint is about.
type HintKind uint8

const (
	// HintDue: the head of a source may be due earlier than its pollers know.
	HintDue HintKind = iota + 1
	// HintCheck: leases may have been cancelled; verify them by extending.
	HintCheck
	// HintSubscribed: the subscription was (re)established; hints may have
	// been missed before.
	HintSubscribed
	// HintControl: the topic was paused, resumed or retuned; read what is
	// ordered of it. It is read after HintSubscribed too, and now and then.
	HintControl
	// HintTail: a client watches the events of the topic, for In from now.
	HintTail
)

// Hint tells pollers to look sooner than they would. It is never trusted for
// more than that, and a lost one costs only time.
type Hint struct {
	Source string // its topic; empty: all (HintSubscribed)
	Kind   HintKind

	// HintDue: In is how long after Sent the head is due (not negative), Sent
	// (also of HintCheck and HintControl) the source's clock when the hint was
	// sent. HintTail: In is how long events are to be published, Watched how
	// long the watcher has been subscribed to them.
	In      time.Duration
	Watched time.Duration
	Sent    time.Time

	// HintCheck: the id in question; empty: all of them.
	ID string
}

// AnnounceEvery is how often a watcher sends a HintTail.
const AnnounceEvery = 3 * time.Second

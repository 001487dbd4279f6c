package exchange

import "time"

// HintKind is the kind of a Hint.
type HintKind uint8

const (
	// HintDue means that the first timer of a source may be due earlier than its
	// pollers know.
	HintDue HintKind = iota + 1
	// HintCheck means that leases may have been cancelled. Pollers extend them to
	// find out.
	HintCheck
	// HintSubscribed means that the subscription was established or restored; hints
	// may have been missed before.
	HintSubscribed
	// HintControl means that the topic was paused, resumed or retuned. Pollers then
	// read its cluster-wide settings; they also do so after HintSubscribed and from
	// time to time.
	HintControl
	// HintFree means that flow control lets a timer be claimed that it held back from
	// some node; see Reply.Held.
	HintFree
	// HintTail means that a client reads the events of the topic for In from now.
	HintTail
	// HintJoined means that a node announced itself; see Announcement.
	HintJoined
	// HintLeft means that announcements were removed, or have expired.
	HintLeft
	// HintHelp means that a node cannot claim all that is due. The announced nodes up
	// to Rank then claim as well.
	HintHelp
)

// Hint asks pollers to look again: at the first timer, their leases, the overrides
// or the watchers. What they then do depends on what they read, so a lost or false
// hint costs only time.
type Hint struct {
	Source string // the topic; empty means all (HintSubscribed)
	Kind   HintKind

	// In is, for HintDue, the time from Sent until the first timer is due, at least
	// 0; for HintTail, how long nodes publish events. Watched is how long the client
	// of a HintTail has been subscribed. Sent is the source's clock when a HintDue,
	// HintCheck, HintFree or HintControl was sent.
	In      time.Duration
	Watched time.Duration
	Sent    time.Time

	// Rank is the highest rank that a HintHelp asks.
	Rank int

	// ID is the timer of a HintCheck; empty means all timers.
	ID string
}

// AnnounceEvery is the interval at which a client that reads events sends a HintTail.
const AnnounceEvery = 3 * time.Second

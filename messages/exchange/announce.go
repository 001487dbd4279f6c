package exchange

import "time"

// AnnounceAction is what a node writes about itself and a topic.
type AnnounceAction string

// Actions of an Announcement.
const (
	// AnnounceJoin adds the node, and notifies the others if it was not among them.
	AnnounceJoin AnnounceAction = "join"
	// AnnounceStay extends the announcement of a node, unless it was removed meanwhile.
	AnnounceStay AnnounceAction = "stay"
	// AnnounceInvite is AnnounceStay, and asks nodes that are not announced to join.
	AnnounceInvite AnnounceAction = "invite"
	// AnnounceLeave removes the node and notifies the others.
	AnnounceLeave AnnounceAction = "leave"
	// AnnounceDissolve removes all nodes and notifies them: the topic is not divided any
	// more.
	AnnounceDissolve AnnounceAction = "dissolve"
)

// Announcement is what a node writes about itself, so that the nodes of a topic agree
// which of them polls it first. Nothing but speed depends on announcements.
type Announcement struct {
	Action AnnounceAction
	Node   string
	Lease  time.Duration // until the announcement expires
}

// Announced is the nodes of a topic that are announced, in no particular order, and for
// how long all of these announcements hold.
type Announced struct {
	Nodes   []string
	Expires time.Duration
}

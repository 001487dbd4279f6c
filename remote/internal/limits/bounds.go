package limits

import (
	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
)

// Bound is how much of a resource peers can make the node hold: one principal,
// one host, and all of them together. 0: there is no bound of its own; the one
// beside it holds.
type Bound struct {
	Name                   string
	Note                   string // what the table adds to the name
	Principal, Host, Total int

	// Holder bounds one stream, subscription or peer.
	Holder int
	// Share is what a principal has room for, whatever others hold. With a share, a
	// holder that has nothing has room for one item within the bounds of the host
	// and in total, and a principal that has nothing for one beyond all bounds.
	// 0: the bounds hold without an exception.
	Share int
}

// The bounds that do not depend on the node's configuration.
var (
	// Streams are calls and sessions.
	Streams = Bound{Name: "streams", Note: ", which are calls and sessions", Principal: 512, Host: 1024, Total: 4096}
	// Dialing bounds the links to peers that are tried at once.
	Dialing = Bound{Name: "links to peers being dialled", Principal: 16, Host: 32, Total: 128}
	// FailedDials bounds the tries that fail.
	FailedDials = Bound{Name: "failed dials a minute", Principal: 120, Host: 240, Total: 1200}
	// LogLines bounds lines about peers: of one kind of one principal or host, and
	// all.
	LogLines = Bound{Name: "log lines a minute", Principal: 1, Host: 1, Total: 60}
	// Subscriptions bounds the subscriptions. Every topic that is open for
	// subscribers has one.
	Subscriptions = Bound{Name: "subscriptions", Principal: 2_000, Host: 4_000, Total: 10_000}
	// IdleTopics bounds the topics without a subscriber that stay open for a while;
	// beyond it they close at once.
	IdleTopics = Bound{Name: "topics that their last subscriber has left", Principal: 256, Host: 512, Total: 2_048}
	// Operations bounds the calls of Operations that end soon.
	Operations = Bound{Name: "operations", Principal: 16, Host: 48, Total: 64}
	// LongOperations bounds those that may go on for as long as the caller reads:
	// Tail, RedriveDead, and listings.
	LongOperations = Bound{Name: "operations that go on", Note: ": Tail, RedriveDead and listings", Principal: 16, Host: 48, Total: 128}
	// Answers bounds the bytes of answers that were asked for and not sent. While
	// one of these is reached, the requests of the stream wait.
	Answers = Bound{
		Name:      "bytes of answers that were asked for and not sent",
		Principal: 16 << 20, Host: 32 << 20, Total: 128 << 20, Holder: 8 << 20, Share: 256 << 10,
	}
	// Leases bounds the bodies of leases in the hands of subscribers. While one of
	// these is reached, the subscription gets no more leases.
	Leases = Bound{
		Name:      "bytes of leases in the hands of subscribers",
		Principal: 32 << 20, Host: 64 << 20, Total: 256 << 20, Holder: 16 << 20, Share: 1 << 20,
	}
	// Mail bounds what waits for the link to a peer: answers and leases, which are
	// counted above as well, and all else. What comes beyond is dropped.
	Mail = Bound{
		Name:      "bytes of messages that wait for the links to peers",
		Principal: 64 << 20, Host: 128 << 20, Total: 512 << 20, Holder: 64 << 20, Share: 1 << 20,
	}
	// Watches bounds the actors of the node that peers watch.
	Watches = Bound{
		Name:      "actors of the node that peers watch",
		Principal: 4096, Host: 8192, Total: 32_768, Holder: 1024, Share: 64,
	}
)

// StreamWindow is how many bytes of a stream a peer may send that are not read; a
// message up to it is held by this alone.
const StreamWindow = 64 << 10

// Connections bounds connections of which there are most at a time.
func Connections(most int) Bound {
	return Bound{Name: "connections", Principal: quarters(most, 2), Host: quarters(most, 3), Total: most}
}

// Waiting bounds those that have made no authenticated call yet. The least is
// for nodes that allow few connections.
func Waiting(most int) Bound {
	return Bound{Name: "connections without an authenticated call", Total: max(quarters(most, 2), 16)}
}

// Messages bounds the messages that have begun to arrive and are not carried out
// yet.
func Messages(largest int) Bound {
	return Bound{
		Name: "bytes of messages", Note: " over 64 KiB, from their first byte until they are carried out",
		Principal: 3 * largest, Host: 6 * largest, Total: 16 * largest,
	}
}

func quarters(most, n int) int { return (most*n + 3) / 4 }

// Table lists all bounds. docs/remote.md shows it for the defaults.
func Table(maxConnections, maxMessage int) []Bound {
	return []Bound{
		Connections(maxConnections),
		Waiting(maxConnections),
		Streams,
		Messages(maxMessage),
		{Name: "bytes of each stream that are not read yet", Principal: StreamWindow},
		Dialing,
		FailedDials,
		LogLines,
		Subscriptions,
		IdleTopics,
		Operations,
		LongOperations,
		{Name: "requests that run at the gateway, and as many at the reminders", Principal: gateway.MaxPrincipalRunning, Host: gateway.MaxHostRunning, Total: gateway.MaxRunning},
		{Name: "requests that wait at the gateway, and as many at the reminders", Principal: gateway.MaxWaiting / 2, Host: gateway.MaxHostWaiting, Total: gateway.MaxWaiting},
		{Name: "bytes of requests at the gateway, and as many at the reminders", Principal: gateway.MaxWaitingBytes / 2, Host: gateway.MaxHostWaitingBytes, Total: gateway.MaxWaitingBytes},
		Answers,
		Leases,
		Mail,
		Watches,
		{Name: "turns at gates, and places in their queues", Principal: gates.MaxPrincipalPlaces, Host: gates.MaxHostPlaces, Total: gates.MaxRemotePlaces},
	}
}

package limits

import (
	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
)

// Bound limits how much of a resource peers can make the node hold: per principal,
// per host and in total. Zero means that this level has no limit.
type Bound struct {
	Name                   string
	Note                   string // appended to the name in the table
	Principal, Host, Total int

	// Holder bounds one stream, subscription or peer.
	Holder int
	// Share is reserved for each principal, independent of the usage of others. With a
	// share, a holder without anything may exceed the bounds of its principal by one
	// item, and a principal without anything may exceed all bounds by one item. 0: the
	// bounds have no exception.
	Share int
}

// The bounds that do not depend on the node's configuration.
var (
	// Streams bounds calls and sessions.
	Streams = Bound{Name: "streams", Note: ", which are calls and sessions", Principal: 512, Host: 1024, Total: 4096}
	// Waits bounds the requests of HTTP that wait for leases or a turn.
	Waits = Bound{Name: "waiting requests of HTTP", Principal: 64, Host: 96, Total: 512}
	// Dialing bounds the concurrent attempts to dial peers.
	Dialing = Bound{Name: "links to peers being dialled", Principal: 16, Host: 32, Total: 128}
	// FailedDials bounds the attempts that fail, per minute.
	FailedDials = Bound{Name: "failed dials a minute", Principal: 120, Host: 240, Total: 1200}
	// LogLines bounds log lines about peers: lines of one kind per principal or host,
	// and all lines.
	LogLines = Bound{Name: "log lines a minute", Principal: 1, Host: 1, Total: 60}
	// Subscriptions bounds the subscriptions, and with them the topics that are open for
	// subscribers.
	Subscriptions = Bound{Name: "subscriptions", Principal: 2_000, Host: 4_000, Total: 10_000}
	// IdleTopics bounds the topics that stay open for a while without a subscriber.
	// Topics beyond the bound close at once.
	IdleTopics = Bound{Name: "topics that their last subscriber has left", Principal: 256, Host: 512, Total: 2_048}
	// Operations bounds the short calls of Operations.
	Operations = Bound{Name: "operations", Principal: 16, Host: 48, Total: 64}
	// LongOperations bounds the calls that last as long as the caller reads: Tail,
	// RedriveDeadLetters, ReshardTopic and listings.
	LongOperations = Bound{Name: "operations that go on", Note: ": Tail, RedriveDeadLetters, ReshardTopic and listings", Principal: 16, Host: 48, Total: 128}
	// Answers bounds the bytes of requested responses that have not been sent. While it
	// is reached, the requests of the stream wait.
	Answers = Bound{
		Name:      "bytes of answers that were asked for and not sent",
		Principal: 8 << 20, Host: 32 << 20, Total: 128 << 20, Holder: 4 << 20, Share: 256 << 10,
	}
	// Leases bounds the bodies of leases that subscribers hold. While it is reached, the
	// subscription receives no more leases.
	Leases = Bound{
		Name:      "bytes of leases in the hands of subscribers",
		Principal: 12 << 20, Host: 48 << 20, Total: 256 << 20, Holder: 8 << 20, Share: 1 << 20,
	}
	// WaitingLeases bounds the bodies of leases that wait for a subscriber, per topic
	// (the holder) and in total. Leases beyond the bound are returned to Redis.
	WaitingLeases = Bound{Name: "bytes of leases that wait for a subscriber", Total: 8 << 20, Holder: 2 << 20}
	// Mail bounds the messages that wait for the link to a peer. Responses and leases
	// count here as well as above. Messages beyond the bound are dropped.
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

// StreamWindow is how many unread bytes of a stream a peer may send. Messages up to
// this size are bounded by it alone.
const StreamWindow = 64 << 10

// Connections returns the bound of connections for a maximum of most.
func Connections(most int) Bound {
	return Bound{Name: "connections", Principal: quarters(most, 2), Host: quarters(most, 3), Total: most}
}

// Waiting returns the bound of connections without an authenticated call. It is at
// least 16, for nodes that allow few connections.
func Waiting(most int) Bound {
	return Bound{Name: "connections without an authenticated call", Total: max(quarters(most, 2), 16)}
}

// Messages returns the bound of messages from their first byte until they are
// carried out.
func Messages(largest int) Bound {
	return Bound{
		Name: "bytes of messages", Note: " over 64 KiB, from their first byte until they are carried out",
		Principal: largest, Host: 6 * largest, Total: 16 * largest,
	}
}

func quarters(most, n int) int { return (most*n + 3) / 4 }

// Table lists all bounds. docs/remote.md shows it with the default arguments.
func Table(maxConnections, maxMessage int) []Bound {
	return []Bound{
		Connections(maxConnections),
		Waiting(maxConnections),
		Streams,
		Waits,
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
		WaitingLeases,
		Mail,
		Watches,
		{Name: "turns at gates, and places in their queues", Principal: gates.MaxPrincipalPlaces, Host: gates.MaxHostPlaces, Total: gates.MaxRemotePlaces},
	}
}

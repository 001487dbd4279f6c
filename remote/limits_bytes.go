package remote

// Bounds of what peers make the node hold. Each is a bound per holder
// (a stream or a subscription), per principal, per host and in total. A
// principal whose whole use stays below the share has room whatever others
// hold, and so does one that holds nothing.
const (
	// Answers that were asked for and not sent. While one of these is reached,
	// the requests of the stream wait.
	maxStreamAnswerBytes    = 4 << 20
	maxPrincipalAnswerBytes = 8 << 20
	maxHostAnswerBytes      = 32 << 20
	maxTotalAnswerBytes     = 128 << 20
	shareAnswerBytes        = 256 << 10

	// Bodies of leases in the hands of subscribers. While one of these is
	// reached, the subscription gets no more leases.
	maxSubscriptionLeaseBytes = 8 << 20
	maxPrincipalLeaseBytes    = 12 << 20
	maxHostLeaseBytes         = 48 << 20
	maxTotalLeaseBytes        = 256 << 20
	shareLeaseBytes           = 1 << 20

	// Bodies of leases that wait for a subscriber, of one topic and of all. What
	// comes beyond is given back.
	maxTopicWaitingBytes = 2 << 20
	maxWaitingBytes      = 8 << 20

	// Mail, which is what waits for the link to a peer: answers and leases, which
	// are counted above as well, and all else. What comes beyond is dropped.
	maxPeerMailBytes      = 64 << 20
	maxPrincipalMailBytes = 64 << 20
	maxHostMailBytes      = 128 << 20
	maxTotalMailBytes     = 512 << 20
	shareMailBytes        = 1 << 20

	// Actors of the node that peers watch.
	maxPeerWatches      = 1024
	maxPrincipalWatches = 4096
	maxHostWatches      = 8192
	maxTotalWatches     = 32_768
	shareWatches        = 64
)

var (
	answerBounds = byteBounds{
		holder: maxStreamAnswerBytes, principal: maxPrincipalAnswerBytes, host: maxHostAnswerBytes,
		total: maxTotalAnswerBytes, share: shareAnswerBytes,
	}
	leaseBounds = byteBounds{
		holder: maxSubscriptionLeaseBytes, principal: maxPrincipalLeaseBytes, host: maxHostLeaseBytes,
		total: maxTotalLeaseBytes, share: shareLeaseBytes,
	}
	waitingBounds = byteBounds{
		holder: maxTopicWaitingBytes, principal: maxWaitingBytes, host: maxWaitingBytes, total: maxWaitingBytes,
	}
	mailBounds = byteBounds{
		holder: maxPeerMailBytes, principal: maxPrincipalMailBytes, host: maxHostMailBytes,
		total: maxTotalMailBytes, share: shareMailBytes,
	}
	watchBounds = byteBounds{
		holder: maxPeerWatches, principal: maxPrincipalWatches, host: maxHostWatches,
		total: maxTotalWatches, share: shareWatches,
	}
)

package peer

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

func testPeers() *peers {
	return &peers{
		known: map[string]*peer{}, Answers: limits.NewBudget(limits.Answers), leases: limits.NewBudget(limits.Leases),
		mail: limits.NewBudget(limits.Mail), watches: limits.NewBudget(limits.Watches),
	}
}

// fill sends a peer mail until there is no room for more, and returns its bytes.
func fill(t *testing.T, p *peer) (bytes int) {
	t.Helper()
	for range maxMail {
		e := &outgoing{target: actor.NewPID(p.address, "a"), body: &messages.LeasesEnded{}, kind: "x", data: make([]byte, 1<<20-1024)}
		if p.enqueue(e) == refusedMail {
			return bytes
		}
		bytes += e.mailed()
	}
	require.Fail(t, "there is always room")
	return 0
}

// Peers of one principal that do not read their links hold no more than one peer may.
func TestMailIsBoundedPerPrincipalHostAndInTotal(t *testing.T) {
	t.Parallel()
	all := testPeers()
	come := func(owner, host string, port int) *peer {
		p, err := all.arrive(fmt.Sprint(host, ":", port), "", Caller{Owner: owner, host: host})
		require.NoError(t, err)
		return p
	}
	held := 0
	first := come("mallory", "h", 1)
	for port := range 20 {
		held += fill(t, come("mallory", "h", port+1))
	}
	require.LessOrEqual(t, held, limits.Mail.Principal+20<<20, "one message of each peer is not refused")
	for port := range 20 {
		held += fill(t, come("eve", "h", 100+port))
	}
	require.LessOrEqual(t, held, limits.Mail.Host+2<<20)
	require.NotEqual(t, refusedMail, come("honest", "h", 200).enqueue(&outgoing{
		target: actor.NewPID("h:200", "a"), body: &messages.LeasesEnded{}, kind: "x", data: make([]byte, 1000),
	}), "others have room")
	queue := first.mail
	require.NotNil(t, first.Take(stockFrame))
	released := queue[0] == nil
	require.True(t, released, "sent mail is not in memory")
	left, _ := first.closeLink()
	require.NotEmpty(t, left)
	require.Zero(t, first.mailBytes.InUse(), "dropped mail is not counted")
}

func TestWatchesAreBoundedPerPrincipal(t *testing.T) {
	t.Parallel()
	all := testPeers()
	watched := 0
	var peers []*peer
	for port := range 10 {
		p, err := all.arrive(fmt.Sprint("h:", port), "", Caller{Owner: "mallory", host: "h"})
		require.NoError(t, err)
		peers = append(peers, p)
		for i := range 2 * limits.Watches.Holder {
			if p.watches("gateway", fmt.Sprint(i), true) {
				watched++
			}
		}
	}
	require.LessOrEqual(t, watched, limits.Watches.Principal+10)
	require.True(t, peers[0].watches("gateway", "0", true), "it already watches that actor")
	require.True(t, peers[0].watches("gateway", "0", false))
	require.True(t, peers[0].watches("gateway", "0", false))
	for _, p := range peers {
		p.unwatched()
		require.Zero(t, p.watching.InUse())
	}
}

package division

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/rendezvous"
	"github.com/wakebell/wakebell/messages/exchange"
)

func never() float64 { return 0 }

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func announced(nodes ...string) exchange.Announced {
	return exchange.Announced{Nodes: nodes, Expires: Lease}
}

// ranked returns a joined member of each rank.
func ranked(t *testing.T, nodes int) []*Member {
	t.Helper()
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i)
	}
	members := make([]*Member, nodes)
	for _, name := range names {
		m := New("topic", name, never)
		m.Answered(start, start, exchange.AnnounceJoin, announced(names...), nil)
		members[rendezvous.Rank("topic", name, names)] = m
	}
	return members
}

// lone returns a member that has looked for others and found none.
func lone(t *testing.T) *Member {
	t.Helper()
	m := New("topic", "a", never)
	action, _ := m.Next(start, true)
	require.Equal(t, exchange.AnnounceStay, action)
	require.False(t, m.Answered(start, start, action, announced(), nil))
	return m
}

func TestNodeThatIsAloneAnnouncesNothing(t *testing.T) {
	t.Parallel()
	m := lone(t)
	for i := range 1000 {
		m.Claimed(start.Add(time.Duration(i)*time.Second), 1, time.Second)
		action, at := m.Next(start.Add(time.Duration(i)*time.Second), true)
		require.Empty(t, action)
		require.Zero(t, at)
	}
	require.Empty(t, m.Role(start))
}

func TestNodeThatFindsOthersJoins(t *testing.T) {
	t.Parallel()
	m := New("topic", "a", func() float64 { return 0.5 })
	action, _ := m.Next(start, false)
	require.Empty(t, action, "it cannot claim")
	action, at := m.Next(start, true)
	require.Empty(t, action)
	require.Equal(t, start.Add(lookWithin/2), at, "nodes that start together look one after the other")
	action, _ = m.Next(at, true)
	require.Equal(t, exchange.AnnounceStay, action)
	require.False(t, m.Answered(at, at, action, announced("b"), nil))
	action, _ = m.Next(at, true)
	require.Equal(t, exchange.AnnounceJoin, action)
	require.True(t, m.Answered(at, at, action, announced("a", "b"), nil))
	require.NotEmpty(t, m.Role(at))

	// It was cut off, its announcement has expired, and others are announced.
	m.Claimed(at, stayFor, 0)
	action, _ = m.Next(at.Add(Lease), true)
	require.Equal(t, exchange.AnnounceStay, action)
	m.Answered(at.Add(Lease), at.Add(Lease), action, announced("b"), nil)
	action, _ = m.Next(at.Add(Lease), true)
	require.Equal(t, exchange.AnnounceJoin, action)
}

func TestNodeThatLosesRacesJoins(t *testing.T) {
	t.Parallel()
	m := lone(t)
	for i := range joinAfter {
		action, _ := m.Next(start, true)
		require.Empty(t, action, i)
		m.Lost(start, false)
	}
	action, _ := m.Next(start, true)
	require.Equal(t, exchange.AnnounceJoin, action)
	action, at := m.Next(start, true)
	require.Empty(t, action, "one at a time")
	require.Zero(t, at)

	require.True(t, m.Answered(start, start, exchange.AnnounceJoin, announced("a", "b"), nil))
	action, at = m.Next(start, true)
	require.Empty(t, action)
	require.True(t, at.After(start) && at.Before(start.Add(Lease)), "it is renewed before it expires")
	action, _ = m.Next(at, true)
	require.Equal(t, exchange.AnnounceStay, action)
}

func TestDelays(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for i, m := range ranked(t, 7) {
		delay, helping := m.Delay(start, false)
		require.False(t, helping)
		require.Equal(t, map[bool]string{true: "primary", false: "fallback"}[i == 0], m.Role(start))
		got = append(got, delay/time.Millisecond)
	}
	require.Equal(t, []time.Duration{0, 250, 500, 1000, 2000, 4000, 4000}, got)
}

func TestViewThatWasNotRenewedCountsForNothing(t *testing.T) {
	t.Parallel()
	for _, m := range ranked(t, 3) {
		delay, _ := m.Delay(start.Add(Lease), false)
		require.Zero(t, delay)
		require.Empty(t, m.Role(start.Add(Lease)))
	}
}

func TestErrorEndsDivisionForLease(t *testing.T) {
	t.Parallel()
	m := ranked(t, 3)[1]
	require.True(t, m.Answered(start, start, exchange.AnnounceStay, exchange.Announced{}, errors.New("OOM")))
	require.Empty(t, m.Role(start))
	for range 2 * joinAfter {
		m.Lost(start, false)
	}
	m.Changed(start, exchange.HintJoined)
	action, at := m.Next(start, true)
	require.Empty(t, action)
	require.Equal(t, start.Add(Lease), at, "then it looks for others")
	m.Lost(start.Add(Lease), false)
	action, _ = m.Next(start.Add(Lease), true)
	require.Equal(t, exchange.AnnounceJoin, action)
}

func TestNodeThatCannotClaimLeaves(t *testing.T) {
	t.Parallel()
	m := ranked(t, 2)[0]
	action, _ := m.Next(start, false)
	require.Equal(t, exchange.AnnounceLeave, action)
	m.Answered(start, start, action, announced("node-1"), nil)
	require.Empty(t, m.Role(start))
	action, at := m.Next(start, false)
	require.Empty(t, action)
	require.Zero(t, at)
}

func TestIdleDivisionIsDissolved(t *testing.T) {
	t.Parallel()
	for _, claims := range []int{0, stayFor - 1, stayFor} {
		primary := ranked(t, 3)[0]
		primary.Claimed(start, claims, 0)
		action, _ := primary.Next(start.Add(Lease), true)
		require.Equal(t, claims < stayFor, action == exchange.AnnounceDissolve, claims)
	}
	fallback := ranked(t, 3)[1]
	action, _ := fallback.Next(start.Add(Lease), true)
	require.Equal(t, exchange.AnnounceStay, action)
	last := ranked(t, 1)[0]
	last.Claimed(start, 1000, 0)
	action, _ = last.Next(start.Add(Lease), true)
	require.Equal(t, exchange.AnnounceDissolve, action, "no other node is left")
}

func TestChangeDuringAnnouncementIsNotForgotten(t *testing.T) {
	t.Parallel()
	m := ranked(t, 3)[1]
	action, _ := m.Next(start.Add(Lease/2), true)
	m.Changed(start, exchange.HintLeft)
	m.Answered(start, start, action, announced("node-0", "node-1", "node-2"), nil)
	_, at := m.Next(start, true)
	require.False(t, at.After(start.Add(spread)))
	m.Changed(start, exchange.HintJoined)
	_, at = m.Next(start, true)
	require.False(t, at.After(start.Add(spread)))
}

// Where all nodes are late, fallbacks do not add to the load by empty claims.
func TestFallbacksThatComeTooLateWaitLonger(t *testing.T) {
	t.Parallel()
	m := ranked(t, 3)[1]
	for _, want := range []time.Duration{1, 2, 4, 8, 8} {
		delay, _ := m.Delay(start, false)
		require.Equal(t, want*firstDelay, delay)
		m.Lost(start, true)
	}
	delay, _ := m.Delay(start.Add(Lease-1), false)
	require.Equal(t, 8*firstDelay, delay)
	m.Claimed(start, 1, time.Second)
	delay, _ = m.Delay(start.Add(helpFor), false)
	require.Equal(t, firstDelay, delay, "it was needed")
}

func TestPrimaryThatLosesRacesInvitesOthers(t *testing.T) {
	t.Parallel()
	m := ranked(t, 3)[0]
	for range joinAfter {
		action, _ := m.Next(start, true)
		require.Empty(t, action)
		m.Lost(start, false)
	}
	action, _ := m.Next(start, true)
	require.Equal(t, exchange.AnnounceInvite, action)
	m.Answered(start, start, action, announced("node-0", "node-1", "node-2"), nil)
	m.Lost(start, false)
	action, _ = m.Next(start, true)
	require.Empty(t, action, "once in a lease")
}

func TestExpiredAnnouncementsAreNoticedAtOnce(t *testing.T) {
	t.Parallel()
	m := ranked(t, 3)[1]
	m.Answered(start, start, exchange.AnnounceStay, exchange.Announced{Nodes: []string{"node-0", "node-1", "node-2"}, Expires: time.Second}, nil)
	_, at := m.Next(start, true)
	require.Equal(t, start.Add(time.Second), at)
}

func TestHelp(t *testing.T) {
	t.Parallel()
	members := ranked(t, 5)
	primary := members[0]
	rank, at := primary.Help(start, true, true)
	require.Zero(t, rank)
	require.Equal(t, start.Add(fullFor), at)
	rank, at = primary.Help(at, true, true)
	require.Equal(t, 1, rank)
	require.Equal(t, firstAsk, at.Sub(start.Add(fullFor)), "and soon again")

	require.False(t, primary.Asked(start, rank))
	require.False(t, members[2].Asked(start, rank))
	require.True(t, members[1].Asked(start, rank))
	delay, helping := members[1].Delay(start, false)
	require.True(t, helping)
	require.Equal(t, helpDelay, delay)

	rank, _ = members[1].Help(start, true, false)
	require.Zero(t, rank, "a helper with free slots asks for none")
	members[1].Help(start, true, true)
	rank, _ = members[1].Help(start.Add(fullFor), true, true)
	require.Equal(t, 3, rank)
	require.True(t, members[2].Asked(start, rank))
	require.True(t, members[3].Asked(start, rank))

	_, helping = members[1].Delay(start.Add(helpFor), true)
	require.True(t, helping, "as long as it is busy")
	delay, helping = members[1].Delay(start.Add(helpFor), false)
	require.False(t, helping)
	require.Equal(t, firstDelay, delay)
	members[2].Lost(start, false)
	_, helping = members[2].Delay(start, true)
	require.False(t, helping, "it was not needed")
}

func TestRequestsForHelpBecomeRarer(t *testing.T) {
	t.Parallel()
	primary := ranked(t, 5)[0]
	asked, now := 0, start
	for now.Before(start.Add(5 * time.Second)) {
		rank, _ := primary.Help(now, true, true)
		if rank > 0 {
			asked++
		}
		primary.Answered(now, now, exchange.AnnounceStay, announced("node-0", "node-1", "node-2", "node-3", "node-4"), nil)
		now = now.Add(time.Millisecond)
	}
	require.Less(t, asked, 25)
	require.Greater(t, asked, 10)
}

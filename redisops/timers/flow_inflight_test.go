package timers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// settleWithin settles leases under flow control, and claims nothing.
func (f *fixture) settleWithin(t testing.TB, flow exchange.Flow, verdict exchange.Verdict, leases ...exchange.Lease) *exchange.Reply {
	t.Helper()
	r := f.Request(0, time.Minute)
	r.Flow = flow
	for _, l := range leases {
		r.Settle = append(r.Settle, storetest.Verdict(verdict, l))
	}
	return f.Run(t, r)
}

// extendWithin extends leases under flow control.
func (f *fixture) extendWithin(t testing.TB, flow exchange.Flow, leases []exchange.Lease) {
	t.Helper()
	r := f.Request(0, time.Minute)
	r.Flow = flow
	for i := range leases {
		r.Extend = append(r.Extend, exchange.Held{ID: leases[i].ID, Token: leases[i].Token})
	}
	reply := f.Run(t, r)
	require.Empty(t, reply.Refused)
	for i := range leases {
		leases[i].Token = reply.Extended
	}
}

func atMost(n int) exchange.Flow { return exchange.Flow{MaxInFlight: n} }

func TestMaxInFlightCountsLeasesOfAllNodes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 20)
		g := f.holder(SourceOptions{})
		mine := f.claimWithin(t, 2, atMost(3)).Leases
		require.Len(t, mine, 2)
		<-time.After(time.Second)
		reply := g.claimWithin(t, 10, atMost(3))
		require.Len(t, reply.Leases, 1)
		require.Equal(t, 59*time.Second, reply.Held, "the first lease may expire then")
		require.Empty(t, g.claimWithin(t, 10, atMost(2)).Leases, "a lower maximum ends none")
		require.Len(t, g.claimWithin(t, 10, atMost(5)).Leases, 2)

		f.extendWithin(t, atMost(5), mine)
		reply = g.claimWithin(t, 10, atMost(5))
		require.Empty(t, reply.Leases, "an extended lease counts once")
		require.Equal(t, time.Minute, reply.Held)

		f.settleWithin(t, atMost(5), exchange.Nack, mine[0])
		require.Len(t, g.claimWithin(t, 10, atMost(5)).Leases, 1)
		f.settleWithin(t, atMost(5), exchange.Ack, mine...)
		require.Len(t, g.claimWithin(t, 10, atMost(5)).Leases, 1)

		<-time.After(time.Minute)
		require.Len(t, g.claimWithin(t, 10, atMost(5)).Leases, 5, "expired leases do not count")
		<-time.After(time.Minute)
		require.Empty(t, f.claimWithin(t, 0, atMost(5)).Leases)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Flow).Val(), "nothing is left")
	})
}

// TestMaxInFlightCountsExtendedLeases extends a lease for longer than the state would stay
// after the claim.
func TestMaxInFlightCountsExtendedLeases(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 1)
		mine := f.claimWithin(t, 1, atMost(1)).Leases
		require.Len(t, mine, 1)
		for range 3 {
			<-time.After(35 * time.Second)
			f.extendWithin(t, atMost(1), mine)
		}
		<-time.After(20 * time.Second)
		f.schedule(t, Entry{ID: "late"})
		require.Empty(t, f.claimWithin(t, 1, atMost(1)).Leases)
		<-time.After(41 * time.Second)
		require.Len(t, f.claimWithin(t, 1, atMost(1)).Leases, 1, "it has expired")
		require.Positive(t, f.rdb.PTTL(t.Context(), f.key.Flow).Val())
	})
}

// TestMaxInFlightCountsLongLeases claims with a short lease while a long one runs.
func TestMaxInFlightCountsLongLeases(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 2)
		r := f.Request(1, time.Hour)
		r.Flow = atMost(2)
		require.Len(t, f.Run(t, r).Leases, 1)
		require.Len(t, f.claimWithin(t, 2, atMost(2)).Leases, 1)
		<-time.After(10 * time.Minute)
		f.schedule(t, Entry{ID: "late"})
		require.Len(t, f.claimWithin(t, 2, atMost(2)).Leases, 1)
	})
}

// TestNodesThatWaitAreToldOnce checks that one hint is sent when a lease ends for which
// some node waits, and none otherwise.
func TestNodesThatWaitAreToldOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.many(t, 20)
		subscription := f.rdb.Subscribe(t.Context(), f.key.Hint)
		t.Cleanup(func() { _ = subscription.Close() })
		_, err := subscription.Receive(t.Context())
		require.NoError(t, err)
		hints := subscription.Channel() // the embedded Redis waits for subscribers that do not read
		g := f.holder(SourceOptions{})
		leases := f.claimWithin(t, 10, atMost(3)).Leases
		require.Len(t, leases, 3)
		f.settleWithin(t, atMost(3), exchange.Ack, leases[0])
		require.Len(t, g.claimWithin(t, 1, atMost(3)).Leases, 1, "the first hint")

		require.Empty(t, g.claimWithin(t, 10, atMost(3)).Leases)
		r := f.Request(1, time.Minute)
		r.Flow, r.Settle = atMost(3), []exchange.Settlement{storetest.Verdict(exchange.Ack, leases[1])}
		taken := f.Run(t, r).Leases
		require.Len(t, taken, 1, "no place is left: no hint")
		f.settleWithin(t, atMost(3), exchange.Ack, leases[2]) // the second hint
		f.settleWithin(t, atMost(3), exchange.Ack, taken[0])  // the nodes that wait have it
		require.NoError(t, f.rdb.Publish(t.Context(), f.key.Hint, "due 5 1").Err())
		var kinds []exchange.HintKind
		for range 3 {
			hint, ok := readHint(f.topic, next(t, hints).Payload)
			require.True(t, ok)
			kinds = append(kinds, hint.Kind)
		}
		require.Equal(t, []exchange.HintKind{exchange.HintFree, exchange.HintFree, exchange.HintDue}, kinds)
	})
}

// TestLeasesWithoutTimersLeaveTheirPlaces checks leases that end without a settlement
// that the limit sees: cancelled, scheduled again, or settled by an exchange without
// the limit; and leases that it has not seen.
func TestLeasesWithoutTimersLeaveTheirPlaces(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.many(t, 40)
		claim := func(want int) []exchange.Lease {
			leases := f.claimWithin(t, 10, atMost(4)).Leases
			require.Len(t, leases, want)
			return leases
		}
		leases := claim(4)
		_, err := f.Cancel(t.Context(), f.topic, leases[0].ID)
		require.NoError(t, err)
		f.schedule(t, Entry{ID: leases[1].ID, In: time.Hour})
		f.Settle(t, storetest.Verdict(exchange.Ack, leases[2]))
		leases = claim(3)

		_, err = f.Cancel(t.Context(), f.topic, leases[0].ID)
		require.NoError(t, err)
		require.Len(t, f.settleWithin(t, atMost(4), exchange.Ack, leases[0]).Refused, 1)
		claim(1)

		require.NoError(t, f.rdb.Del(t.Context(), f.key.Flow).Err())
		f.extendWithin(t, atMost(4), leases[1:])
		claim(2)
	})
}

// inFlightStep is a step of the model.
type inFlightStep struct {
	do    string
	node  int
	most  int
	n     int
	after time.Duration
}

// TestMaxInFlightModel compares the maximum with a model of the leases.
func TestMaxInFlightModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) inFlightStep {
			return inFlightStep{
				rapid.SampledFrom([]string{"claim", "claim", "ack", "nack", "release", "reject", "extend", "crash", "cancel"}).Draw(rt, "do"),
				rapid.IntRange(0, 1).Draw(rt, "node"), rapid.IntRange(1, 8).Draw(rt, "most"), rapid.IntRange(1, 6).Draw(rt, "n"),
				time.Duration(rapid.IntRange(0, 40).Draw(rt, "after")) * time.Second,
			}
		}), 1, 60).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			rdb, _ := redistest.Embedded(t)
			wrong = runInFlightModel(t, newFixture(t, rdb), steps)
		})
		require.Empty(rt, wrong)
	})
}

// heldLease is a lease of the model.
type heldLease struct {
	exchange.Lease
	until time.Time
}

// runInFlightModel returns the first difference between the store and the model.
func runInFlightModel(t *testing.T, f *fixture, steps []inFlightStep) string {
	t.Helper()
	f.many(t, 8*len(steps))
	nodes := []*fixture{f, f.holder(SourceOptions{})}
	held := make([][]heldLease, 2)
	var crashed []heldLease
	live := func() (n int) {
		for _, list := range append([][]heldLease{crashed}, held...) {
			for _, l := range list {
				if time.Now().Before(l.until) {
					n++
				}
			}
		}
		return n
	}
	for i, s := range steps {
		<-time.After(s.after)
		for n := range held { // a node ends what has expired
			held[n] = alive(held[n])
		}
		node, mine := nodes[s.node], held[s.node]
		some := mine[:min(s.n, len(mine))]
		switch s.do {
		case "claim":
			before := live()
			reply := node.claimWithin(t, s.n, atMost(s.most))
			if want := max(0, min(s.n, s.most-before)); len(reply.Leases) != want {
				return fmt.Sprintf("step %d: %d leases, want %d: %d of %d were in flight", i, len(reply.Leases), want, before, s.most)
			}
			for _, l := range reply.Leases {
				held[s.node] = append(held[s.node], heldLease{l, time.Now().Add(reply.Remaining)})
			}
			if blocked := live() >= s.most; blocked != (reply.Held > 0) {
				return fmt.Sprintf("step %d: held for %v, %d of %d are in flight", i, reply.Held, live(), s.most)
			}
		case "extend":
			leases := leasesOf(some)
			node.extendWithin(t, atMost(s.most), leases)
			for k := range some {
				some[k] = heldLease{leases[k], time.Now().Add(time.Minute)}
			}
		case "crash":
			crashed = append(crashed, mine...)
			held[s.node] = nil
		case "cancel":
			for _, l := range some {
				_, err := f.Cancel(t.Context(), f.topic, l.ID)
				require.NoError(t, err)
			}
			node.settleWithin(t, atMost(s.most), exchange.Ack, leasesOf(some)...)
			held[s.node] = mine[len(some):]
		default:
			verdict := map[string]exchange.Verdict{
				"ack": exchange.Ack, "nack": exchange.Nack, "release": exchange.Release, "reject": exchange.DeadLetter,
			}[s.do]
			node.settleWithin(t, atMost(s.most), verdict, leasesOf(some)...)
			held[s.node] = mine[len(some):]
		}
	}
	return ""
}

func alive(all []heldLease) (some []heldLease) {
	for _, l := range all {
		if time.Now().Before(l.until) {
			some = append(some, l)
		}
	}
	return some
}

func leasesOf(held []heldLease) (leases []exchange.Lease) {
	for _, l := range held {
		leases = append(leases, l.Lease)
	}
	return leases
}

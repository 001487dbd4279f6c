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

// claimWithin claims up to want timers under flow control.
func (f *fixture) claimWithin(t testing.TB, want int, flow exchange.Flow) *exchange.Reply {
	t.Helper()
	r := f.Request(want, time.Minute)
	r.Flow = flow
	return f.Run(t, r)
}

// inVirtualTime runs a test on the embedded Redis, whose clock is that of a bubble.
func inVirtualTime(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		test(t, newFixture(t, rdb))
	})
}

// many schedules timers that are due.
func (f *fixture) many(t testing.TB, n int) {
	t.Helper()
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{ID: fmt.Sprintf("%06d", i), At: time.Now().Add(-time.Hour)}
	}
	f.schedule(t, entries...)
}

func TestRateLimitGivesTokensOverAllNodes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 100)
		limit := exchange.Flow{RateLimit: 10, RatePer: time.Second, RateBurst: 3}
		other := f.holder(SourceOptions{})
		reply := f.claimWithin(t, 2, limit)
		require.Len(t, reply.Leases, 2)
		require.Zero(t, reply.Held, "a token is left")
		reply = other.claimWithin(t, 10, limit)
		require.Len(t, reply.Leases, 1)
		require.Equal(t, 100*time.Millisecond, reply.Held)
		require.Zero(t, reply.Next)

		<-time.After(reply.Held - time.Millisecond)
		early := f.claimWithin(t, 10, limit)
		require.Empty(t, early.Leases)
		require.Equal(t, time.Millisecond, early.Held)
		<-time.After(early.Held)
		require.Len(t, f.claimWithin(t, 10, limit).Leases, 1)
		<-time.After(time.Hour)
		require.Len(t, f.claimWithin(t, 10, limit).Leases, 3, "a pause saves no more than the burst")
		require.Len(t, f.claimWithin(t, 10, exchange.Flow{}).Leases, 10, "without the limit")
	})
}

func TestReleaseGivesItsTokenBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		limit := exchange.Flow{RateLimit: 1, RatePer: time.Hour}
		leases := f.claimWithin(t, 10, limit).Leases
		require.Len(t, leases, 1)
		hints := f.rdb.Subscribe(t.Context(), f.key.Hint)
		t.Cleanup(func() { _ = hints.Close() })
		_, err := hints.Receive(t.Context())
		require.NoError(t, err)
		r := f.Request(0, time.Minute)
		r.Settle, r.Flow = []exchange.Settlement{storetest.Verdict(exchange.Release, leases[0])}, limit
		reply := f.Run(t, r)
		require.Zero(t, reply.Held)
		hint, ok := readHint(f.topic, next(t, hints.Channel()).Payload)
		require.True(t, ok)
		require.Equal(t, exchange.HintFree, hint.Kind, "other nodes may wait for the token")
		settle := r.Settle
		r = f.Request(0, time.Minute)
		r.Settle, r.Flow = settle, limit
		require.Len(t, f.Run(t, r).Refused, 1)
		reply = f.claimWithin(t, 10, limit)
		require.Len(t, reply.Leases, 1, "a refused release gives none")

		r = f.Request(10, time.Minute)
		r.Settle, r.Flow = []exchange.Settlement{storetest.Verdict(exchange.Nack, reply.Leases[0])}, limit
		reply = f.Run(t, r)
		require.Empty(t, reply.Leases, "a retry needs a token")
		require.InDelta(t, time.Hour, reply.Held, float64(time.Minute))
	})
}

func TestRepeatedAnswerTakesNoTokenAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 10)
		r := f.Request(10, time.Minute)
		r.Flow = exchange.Flow{RateLimit: 1, RatePer: time.Minute, RateBurst: 2}
		reply := f.Run(t, r)
		require.Len(t, reply.Leases, 2)
		again := f.Run(t, r)
		require.Equal(t, reply.Leases, again.Leases)
		require.Equal(t, reply.Held, again.Held)
		<-time.After(reply.Held)
		require.Len(t, f.claimWithin(t, 10, r.Flow).Leases, 1)
	})
}

// TestLostRateLimitStartsWithBurst checks that a limit whose state is lost, or whose
// clock has been set back, blocks for no longer than a period.
func TestLostRateLimitStartsWithBurst(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 100)
		limit := exchange.Flow{RateLimit: 2, RatePer: time.Minute, RateBurst: 4}
		require.Len(t, f.claimWithin(t, 10, limit).Leases, 4)
		require.Equal(t, 30*time.Second, f.claimWithin(t, 10, limit).Held)
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Flow).Err())
		require.Len(t, f.claimWithin(t, 10, limit).Leases, 4)

		far := float64(time.Now().Add(1000 * time.Hour).Unix())
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Flow, z(far, "t")).Err())
		reply := f.claimWithin(t, 10, limit)
		require.Empty(t, reply.Leases)
		require.Equal(t, 30*time.Second, reply.Held)
		<-time.After(reply.Held)
		require.Len(t, f.claimWithin(t, 10, limit).Leases, 1)

		<-time.After(2*time.Minute + time.Second)
		require.Len(t, f.claimWithin(t, 10, limit).Leases, 4)
		life := f.rdb.PTTL(t.Context(), f.key.Flow).Val()
		require.Equal(t, 3*time.Minute, life, "the time until all tokens are back, and a margin")
	})
}

// TestRaisedRateIsWaitedForOnce checks a topic that has used its token by a limit that is a
// little slower: the next timer waits for a token of the new limit, and no longer.
func TestRaisedRateIsWaitedForOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.many(t, 10)
		require.Len(t, f.claimWithin(t, 10, exchange.Flow{RateLimit: 1, RatePer: 19 * time.Second}).Leases, 1)
		raised := exchange.Flow{RateLimit: 1, RatePer: 10 * time.Second}
		reply := f.claimWithin(t, 10, raised)
		require.Empty(t, reply.Leases)
		require.LessOrEqual(t, reply.Held, 10*time.Second+time.Microsecond)
		<-time.After(reply.Held)
		require.Len(t, f.claimWithin(t, 10, raised).Leases, 1)
	})
}

// rateStep is a claim of the model.
type rateStep struct {
	wait  float64 // before it, as a fraction of the time in which a whole burst comes back
	held  bool    // wait instead until the last answer lets timers be claimed
	want  int
	other bool // by the other node
}

// TestRateLimitModel compares the limit with its definition, by two nodes at random
// instants: in no span of time are there more leases than burst + rate · span, and while
// there are tokens, leases are given.
func TestRateLimitModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := exchange.Flow{
			RateLimit: rapid.IntRange(1, 2000).Draw(rt, "limit"), RateBurst: rapid.IntRange(1, 50).Draw(rt, "burst"),
			RatePer: time.Duration(rapid.Int64Range(1e3, 3600e6).Draw(rt, "per")) * time.Microsecond,
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) rateStep {
			return rateStep{
				rapid.Float64Range(0, 2).Draw(rt, "wait"), rapid.Bool().Draw(rt, "held"),
				rapid.IntRange(1, 60).Draw(rt, "want"), rapid.Bool().Draw(rt, "other"),
			}
		}), 1, 30).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			rdb, _ := redistest.Embedded(t)
			wrong = runRateModel(t, newFixture(t, rdb), limit, steps)
		})
		require.Empty(rt, wrong)
	})
}

// runRateModel returns the first difference between the store and the model.
func runRateModel(t *testing.T, f *fixture, limit exchange.Flow, steps []rateStep) string {
	t.Helper()
	step := limit.RatePer.Seconds() / float64(limit.RateLimit)
	slack := 0.1 + 3e-6/step // a microsecond is the resolution of the clock
	f.many(t, 60*len(steps))
	nodes := map[bool]*fixture{false: f, true: f.holder(SourceOptions{})}
	tokens, last, held := float64(limit.RateBurst), time.Now(), time.Time{}
	for i, s := range steps {
		wait := time.Duration(s.wait * step * float64(limit.RateBurst) * float64(time.Second)).Truncate(time.Microsecond)
		if s.held && held.After(time.Now()) {
			wait = time.Until(held)
		}
		<-time.After(wait)
		tokens = min(float64(limit.RateBurst), tokens+time.Since(last).Seconds()/step)
		last = time.Now()
		reply := nodes[s.other].claimWithin(t, s.want, limit)
		held = time.Now().Add(reply.Held)
		switch n := len(reply.Leases); {
		case float64(n) > tokens+slack:
			return fmt.Sprintf("step %d: %d leases, there were %v tokens", i, n, tokens)
		case n < min(s.want, int(tokens-slack)):
			return fmt.Sprintf("step %d: %d leases of %d, there were %v tokens", i, n, s.want, tokens)
		default:
			tokens -= float64(n)
		}
		if reply.Held > 0 && (tokens > 1+slack || reply.Held > limit.RatePer+time.Microsecond) {
			return fmt.Sprintf("step %d: held for %v, there are %v tokens", i, reply.Held, tokens)
		}
	}
	return ""
}

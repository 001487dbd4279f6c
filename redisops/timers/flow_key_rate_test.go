//go:build !race

package timers

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// tokenLate is by how much later than its token a timer may start.
const tokenLate = 21 * time.Millisecond

func TestKeyWithoutTokenWaitsForIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Second, KeyRateBurst: 2}
		f.dueOf(t, "k", "a", "b", "c", "d", "e")
		f.dueOf(t, "other", "o")
		f.due(t, "free")
		other := f.holder(SourceOptions{})
		require.ElementsMatch(t, []string{"a", "b", "o", "free"}, storetest.IDs(f.keyRated(t, 10, limit).Leases), "a burst of each key")
		reply := other.keyRated(t, 10, limit)
		require.Empty(t, reply.Leases)
		require.InDelta(t, time.Second, reply.Next, float64(tokenLate), "no exchange before the next token")
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.EqualValues(t, 2, stats.Parked, "d and e")
		require.Zero(t, stats.Due)
		waiting := f.get(t, "c")
		require.InDelta(t, time.Second, waiting.Due.Sub(reply.Now), float64(tokenLate))
		require.WithinDuration(t, time.Now().Add(-time.Hour), waiting.Activation, time.Minute)

		for _, id := range []string{"c", "d", "e"} {
			<-time.After(reply.Next)
			reply = other.keyRated(t, 10, limit)
			require.Equal(t, []string{id}, storetest.IDs(reply.Leases))
			require.Equal(t, 1, reply.Leases[0].Claims)
		}
		require.Equal(t, waiting.Activation.Add(2*time.Second), reply.Leases[0].Activation)
		life := f.rdb.PTTL(t.Context(), f.key.KeyRates).Val()
		require.Greater(t, life, time.Minute)
		require.Less(t, life, 2*time.Minute)
		require.EqualValues(t, 1, f.rdb.ZCard(t.Context(), f.key.KeyRates).Val(), "a key whose tokens are back is removed")
	})
}

// TestSoleTimerOfKeyWaits checks timers that are alone in their key whenever an
// exchange looks at them.
func TestSoleTimerOfKeyWaits(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Minute}
		for i := range 3 {
			f.dueOf(t, "k", fmt.Sprint(i))
			reply := f.keyRated(t, 10, limit)
			if i > 0 {
				require.Empty(t, reply.Leases)
				found, err := f.RunNow(t.Context(), f.topic, fmt.Sprint(i))
				require.NoError(t, err)
				require.NotEmpty(t, found)
				require.Empty(t, f.keyRated(t, 10, limit).Leases, "it waits nevertheless")
				<-time.After(reply.Next)
				reply = f.keyRated(t, 10, limit)
			}
			require.Equal(t, []string{fmt.Sprint(i)}, storetest.IDs(reply.Leases))
			f.keyRated(t, 0, limit, ack(reply.Leases[0]))
		}
		f.noKeysLeft(t)
	})
}

// TestWaitingTimerOfKeyIsCancelled checks that the next timer of the key then waits
// for the token.
func TestWaitingTimerOfKeyIsCancelled(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Minute}
		f.dueOf(t, "k", "a", "b", "c")
		l := f.keyRated(t, 10, limit).Leases[0]
		_, err := f.Cancel(t.Context(), f.topic, "b")
		require.NoError(t, err)
		reply := f.keyRated(t, 10, limit, ack(l))
		require.Empty(t, reply.Leases)
		require.InDelta(t, time.Minute, reply.Next, float64(tokenLate))
		<-time.After(reply.Next)
		require.Equal(t, []string{"c"}, storetest.IDs(f.keyRated(t, 10, limit).Leases))
	})
}

func TestRetriesAndReleasesCountByKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Minute}
		f.dueOf(t, "k", "a", "b")
		l := f.keyRated(t, 1, limit).Leases[0]
		reply := f.keyRated(t, 0, limit, storetest.Verdict(exchange.Release, l))
		require.Empty(t, reply.Refused)
		l = f.keyRated(t, 10, limit).Leases[0]
		require.Equal(t, "a", l.ID, "its token was given back")
		require.Empty(t, f.keyRated(t, 10, limit, storetest.Verdict(exchange.Nack, l)).Leases, "a retry needs a token")
		ids := map[string]bool{}
		for range 2 {
			reply = f.keyRated(t, 10, limit)
			<-time.After(reply.Next)
			reply = f.keyRated(t, 10, limit)
			require.Len(t, reply.Leases, 1)
			ids[reply.Leases[0].ID] = true
			f.keyRated(t, 0, limit, ack(reply.Leases[0]))
		}
		require.Equal(t, map[string]bool{"a": true, "b": true}, ids)
		f.noKeysLeft(t)
	})
}

// TestRepeatedAnswerTakesNoTokenOfKeyAgain checks that an exchange whose answer was lost
// takes its tokens once.
func TestRepeatedAnswerTakesNoTokenOfKeyAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c", "d", "e")
		r := f.Request(1, time.Minute)
		r.Flow = exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Minute, KeyRateBurst: 3}
		first := f.Run(t, r)
		for range 5 {
			require.Equal(t, first.Leases, f.Run(t, r).Leases)
		}
		require.Len(t, f.keyRated(t, 10, r.Flow).Leases, 2)
	})
}

func TestOrderAndRateOfKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{PerKey: 1, KeyRateLimit: 1, KeyRatePer: time.Second}
		f.dueOf(t, "k", "c", "a", "b")
		l := f.keyRated(t, 10, limit).Leases
		require.Equal(t, []string{"c"}, storetest.IDs(l))
		<-time.After(time.Minute)
		require.Empty(t, f.keyRated(t, 10, limit).Leases, "the key is held")
		reply := f.keyRated(t, 10, limit, ack(l[0]))
		require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases), "the key is free, and has a token")
		reply = f.keyRated(t, 10, limit, ack(reply.Leases[0]))
		require.Empty(t, reply.Leases, "the key is free, but has no token")
		f.schedule(t, Entry{ID: "first", Key: "k", At: time.Now().Add(-24 * time.Hour)})
		<-time.After(reply.Next)
		reply = f.keyRated(t, 10, limit)
		require.Equal(t, []string{"b"}, storetest.IDs(reply.Leases), "it holds the key while it waits")
		reply = f.keyRated(t, 10, limit, ack(reply.Leases[0]))
		<-time.After(reply.Next)
		require.Equal(t, []string{"first"}, storetest.IDs(f.keyRated(t, 10, limit).Leases))
	})
}

// TestLostKeyRateStartsWithBurst checks that a key waits for no longer than a token
// takes when the state is lost, when the clock has been set back, and when the limit
// is raised or removed.
func TestLostKeyRateStartsWithBurst(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour}
		ids := make([]string, 30)
		for i := range ids {
			ids[i] = fmt.Sprintf("%02d", i)
		}
		f.dueOf(t, "k", ids...)
		require.Len(t, f.keyRated(t, 100, limit).Leases, 1)
		require.NoError(t, f.rdb.Del(t.Context(), f.key.KeyRates).Err())
		require.Empty(t, f.keyRated(t, 100, limit).Leases, "nothing looks before the instant that was found")
		require.NoError(t, f.src.SweepKeys(t.Context(), limit))
		reply := f.keyRated(t, 100, limit)
		require.InDelta(t, time.Hour, reply.Next, float64(time.Second))

		far := float64(time.Now().Add(1000 * time.Hour).Unix())
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.KeyRates, z(far, "k")).Err())
		<-time.After(reply.Next)
		reply = f.keyRated(t, 100, limit)
		require.LessOrEqual(t, reply.Next, time.Hour+tokenLate)
		<-time.After(reply.Next)
		require.Equal(t, []string{"01"}, storetest.IDs(f.keyRated(t, 100, limit).Leases))

		raised := exchange.Flow{KeyRateLimit: 10, KeyRatePer: time.Second, KeyRateBurst: 3}
		require.NoError(t, f.src.SweepKeys(t.Context(), raised))
		reply = f.keyRated(t, 100, raised)
		for range 5 {
			<-time.After(reply.Next)
			reply = f.keyRated(t, 100, raised)
			require.LessOrEqual(t, len(reply.Leases), 3)
		}
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.GreaterOrEqual(t, stats.Leased, int64(5))
		require.Less(t, stats.Leased, int64(20))
		require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{}))
		require.Len(t, f.keyRated(t, 100, exchange.Flow{}).Leases, 30-int(stats.Leased), "without a limit")
	})
}

// TestRaisedKeyRateIsWaitedForOnce checks a key that has used its token by a limit that is a
// little slower: the next timer waits for a token of the new limit.
func TestRaisedKeyRateIsWaitedForOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b")
		require.Len(t, f.keyRated(t, 10, exchange.Flow{KeyRateLimit: 1, KeyRatePer: 19 * time.Second}).Leases, 1)
		raised := exchange.Flow{KeyRateLimit: 1, KeyRatePer: 10 * time.Second}
		require.NoError(t, f.src.SweepKeys(t.Context(), raised))
		f.keyRated(t, 10, raised)
		<-time.After(10*time.Second + tokenLate)
		require.Equal(t, []string{"b"}, storetest.IDs(f.keyRated(t, 10, raised).Leases))
	})
}

// keyRateStep is a step of the model.
type keyRateStep struct {
	wait   float64 // in tokens
	key    int
	add    int // timers of the key
	want   int
	other  bool // by the other node
	verb   exchange.Verdict
	settle int // how many of the leases
}

// TestModelOfKeyRates compares the limit with its definition, by two nodes at random
// instants: of no key are there more leases in any span of time than burst + rate · span;
// and a key with due timers and tokens gives leases at once, unless a timer waits for its
// token, which is at most some ms away.
func TestModelOfKeyRates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := exchange.Flow{
			KeyRateLimit: rapid.IntRange(1, 2000).Draw(rt, "limit"), KeyRateBurst: rapid.IntRange(1, 30).Draw(rt, "burst"),
			KeyRatePer: time.Duration(rapid.Int64Range(1e5, 600e6).Draw(rt, "per")) * time.Microsecond,
			PerKey:     rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "per key"),
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) keyRateStep {
			return keyRateStep{
				rapid.Float64Range(0, 3).Draw(rt, "wait"), rapid.IntRange(0, 2).Draw(rt, "key"), rapid.IntRange(0, 5).Draw(rt, "add"),
				rapid.IntRange(0, 20).Draw(rt, "want"), rapid.Bool().Draw(rt, "other"),
				rapid.SampledFrom([]exchange.Verdict{exchange.Ack, exchange.Ack, exchange.Nack, exchange.Release, exchange.DeadLetter}).Draw(rt, "verdict"),
				rapid.IntRange(0, 5).Draw(rt, "settle"),
			}
		}), 1, 40).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			rdb, _ := redistest.Embedded(t)
			wrong = (&keyRateModel{f: newFixture(t, rdb), limit: limit, keys: map[string]string{}, tokens: map[string]float64{}}).run(t, steps)
		})
		require.Empty(rt, wrong)
	})
}

type keyRateModel struct {
	f      *fixture
	limit  exchange.Flow
	keys   map[string]string // of the timers that exist
	held   [2][]exchange.Lease
	tokens map[string]float64 // of each key
	last   time.Time          // when tokens were counted
	n      int
}

func (m *keyRateModel) run(t *testing.T, steps []keyRateStep) string {
	t.Helper()
	nodes := [2]*fixture{m.f, m.f.holder(SourceOptions{})}
	step := m.limit.KeyRatePer.Seconds() / float64(m.limit.KeyRateLimit)
	m.last = time.Now()
	for i, s := range steps {
		<-time.After(time.Duration(s.wait * step * float64(time.Second)).Truncate(time.Microsecond))
		m.add(t, s)
		node := 0
		if s.other {
			node = 1
		}
		if wrong := m.exchange(t, nodes[node], node, s); wrong != "" {
			return fmt.Sprintf("step %d: %s", i, wrong)
		}
	}
	return m.drain(t, nodes)
}

// add schedules timers of a key in the past: some at one instant, which the ids do not
// order.
func (m *keyRateModel) add(t *testing.T, s keyRateStep) {
	t.Helper()
	for range s.add {
		id, key := fmt.Sprintf("%03d", 999-m.n), fmt.Sprint("key", s.key)
		m.f.schedule(t, Entry{ID: id, Key: key, At: time.Now().Add(-time.Hour + time.Duration(m.n/2)*time.Second)})
		m.keys[id] = key
		m.n++
	}
}

// exchange settles some leases and claims, and compares what was claimed with the tokens.
func (m *keyRateModel) exchange(t *testing.T, f *fixture, node int, s keyRateStep) string {
	t.Helper()
	step := m.limit.KeyRatePer.Seconds() / float64(m.limit.KeyRateLimit)
	for _, key := range []string{"key0", "key1", "key2"} {
		if _, ok := m.tokens[key]; !ok {
			m.tokens[key] = float64(m.limit.KeyRateBurst)
		}
		m.tokens[key] = min(float64(m.limit.KeyRateBurst), m.tokens[key]+time.Since(m.last).Seconds()/step)
	}
	m.last = time.Now()
	var settle []exchange.Settlement
	for range min(s.settle, len(m.held[node])) {
		l := m.held[node][0]
		m.held[node] = m.held[node][1:]
		settle = append(settle, storetest.Verdict(s.verb, l))
		switch s.verb {
		case exchange.Ack, exchange.DeadLetter:
			delete(m.keys, l.ID)
		case exchange.Release:
			m.tokens[m.keys[l.ID]] = min(float64(m.limit.KeyRateBurst), m.tokens[m.keys[l.ID]]+1)
		}
	}
	keys := map[string]string{}
	for id, key := range m.keys {
		keys[id] = key
	}
	r := f.Request(s.want, 1000*time.Hour)
	r.Flow, r.Settle = m.limit, settle
	reply := f.Run(t, r)
	if again := f.Run(t, r); !slices.Equal(storetest.IDs(again.Leases), storetest.IDs(reply.Leases)) {
		return "another answer to the same exchange"
	}
	m.held[node] = append(m.held[node], reply.Leases...)
	slack := 0.1 + 3e-6/step // a microsecond is the resolution of the clock
	for _, l := range reply.Leases {
		m.tokens[keys[l.ID]]--
	}
	for key, n := range m.tokens {
		if n < -slack {
			return fmt.Sprintf("%s: %v tokens are left", key, n)
		}
	}
	return ""
}

// drain acks and claims until no timers are left: none stays parked, and none waits for
// much longer than its tokens take.
func (m *keyRateModel) drain(t *testing.T, nodes [2]*fixture) string {
	t.Helper()
	step := m.limit.KeyRatePer.Seconds() / float64(m.limit.KeyRateLimit)
	began, left := time.Now(), len(m.keys)
	for round := 0; len(m.keys) > 0; round++ {
		if round > 20*m.n+100 {
			return fmt.Sprintf("%d timers are left: %v", len(m.keys), m.keys)
		}
		var next time.Duration
		for node, f := range nodes {
			if wrong := m.exchange(t, f, node, keyRateStep{want: 50, settle: 50, verb: exchange.Ack}); wrong != "" {
				return "drain: " + wrong
			}
			r := f.Request(0, time.Minute)
			r.Flow = m.limit
			next = f.Run(t, r).Next
		}
		if len(m.held[0])+len(m.held[1]) == 0 && next > 0 {
			<-time.After(next)
		}
	}
	took, bound := time.Since(began).Seconds(), (step+tokenLate.Seconds())*float64(left+1)
	if took > bound {
		return fmt.Sprintf("%d timers took %v s, which is more than %v s", left, took, bound)
	}
	return ""
}

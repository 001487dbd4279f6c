package queue

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestQueueIsFirstInFirstOut(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b")
		f.put(t, "c")
		reply := f.Claim(t, 2)
		require.Equal(t, []string{"a", "b"}, payloads(reply.Leases))
		require.Zero(t, reply.Next, "another one waits")
		for _, l := range reply.Leases {
			require.Equal(t, 1, l.Claims)
			require.Zero(t, l.Failures)
			require.Len(t, l.ID, 32)
			require.WithinDuration(t, reply.Now, l.Activation, time.Minute)
			require.Empty(t, l.Fault)
		}
		r := f.Request(10, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, reply.Leases[0]), storetest.Verdict(exchange.Ack, reply.Leases[1])}
		reply = f.Run(t, r)
		require.Equal(t, []string{"c"}, payloads(reply.Leases))
		require.InDelta(t, time.Minute, reply.Next, float64(time.Second), "the lease just given")
		reply = f.Settle(t, storetest.Verdict(exchange.Ack, reply.Leases[0]))
		require.Empty(t, reply.Refused)
		require.Negative(t, reply.Next)
		require.Equal(t, []string{"processing:lease_token_counter"}, f.left(t))
	})
}

func TestQueueRefusesLostLease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a")
		first := f.lapse(t, 1)[0]
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Nack, first)).Refused, "late, but no other consumer has claimed it")
		f.pass(t, time.Now())
		second := f.Claim(t, 1).Leases[0]
		require.Equal(t, 2, second.Claims)
		require.Equal(t, 1, second.Failures)
		for _, v := range []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Fail, exchange.Release} {
			require.Equal(t, []exchange.Refusal{{Index: 0, Reason: exchange.Lost}}, f.Settle(t, storetest.Verdict(v, first)).Refused)
		}
		require.Equal(t, exchange.Lost, f.Extend(t, time.Minute, first).Refused[0].Reason)
		reply := f.Settle(t, storetest.Verdict(exchange.Ack, second), storetest.Verdict(exchange.Release, second))
		require.Equal(t, []exchange.Refusal{{Index: 1, Reason: exchange.Lost}}, reply.Refused, "the first of two verdicts counts")
	})
}

// TestQueueTokensAreNewAfterFailover checks that a lease that a replica does not know, which takes
// over, settles nothing of the next one.
func TestQueueTokensAreNewAfterFailover(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b")
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, f.Claim(t, 1).Leases[0])).Refused)
		counter, err := f.rdb.Get(t.Context(), f.keys.counter).Result()
		require.NoError(t, err)
		lost := f.Claim(t, 1).Leases[0]
		require.NoError(t, f.rdb.Set(t.Context(), f.keys.counter, counter, 0).Err())
		require.NoError(t, f.rdb.Del(t.Context(), f.keys.tokens, f.keys.deadlines, f.keys.counts).Err())
		require.NoError(t, f.rdb.RPopLPush(t.Context(), f.keys.processing, f.keys.pending).Err())
		other := f.holder(SourceOptions{})
		lease := other.Claim(t, 1).Leases[0]
		require.Equal(t, lost.ID, lease.ID)
		require.Len(t, f.Settle(t, storetest.Verdict(exchange.Nack, lost)).Refused, 1)
		require.Empty(t, other.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused)
	})
}

func TestQueueNackKeepsInProcessingUnderNewToken(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b")
		a := f.Claim(t, 1).Leases[0]
		n := storetest.Verdict(exchange.Nack, a)
		n.Delay = time.Hour
		require.Empty(t, f.Settle(t, n).Refused)
		require.Len(t, f.list(t, f.keys.processing), 1)
		require.Regexp(t, `^2\.\d+$`, f.rdb.HGet(t.Context(), f.keys.tokens, f.list(t, f.keys.processing)[0]).Val())
		require.Len(t, f.Settle(t, storetest.Verdict(exchange.Ack, a)).Refused, 1)
		reply := f.Claim(t, 5)
		require.Equal(t, []string{"b"}, payloads(reply.Leases))
		require.Regexp(t, `^3\.\d+ `+regexp.QuoteMeta(f.list(t, f.keys.processing)[0])+"$", reply.Leases[0].Token)
	})
}

func TestQueueReleaseRestoresOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b", "c", "d")
		l := f.Claim(t, 3).Leases
		reply := f.Settle(t, storetest.Verdict(exchange.Release, l[1]), storetest.Verdict(exchange.Release, l[0]), storetest.Verdict(exchange.Release, l[2]))
		require.Empty(t, reply.Refused)
		require.Zero(t, reply.Next)
		again := f.Claim(t, 4).Leases
		require.Equal(t, []string{"a", "b", "c", "d"}, payloads(again))
		require.Equal(t, 1, again[0].Claims, "a release does not count as a delivery")

		f.Settle(t, storetest.Verdict(exchange.Release, again[1]), storetest.Verdict(exchange.Release, again[3]))
		f.Settle(t, storetest.Verdict(exchange.Release, again[2]), storetest.Verdict(exchange.Release, again[0]))
		require.Equal(t, []string{"a", "b", "c", "d"}, payloads(f.Claim(t, 4).Leases), "over several exchanges, too")
	})
}

func TestQueueGivesUpAfterTooManyDeliveries(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		h := f.holder(SourceOptions{MaxDeliveries: 2})
		f.put(t, "poison", "good")
		h.lapse(t, 1)
		h.lapse(t, 1)
		reply := h.Claim(t, 1)
		require.Equal(t, []string{"good"}, payloads(reply.Leases))
		require.Len(t, reply.DeadLettered, 1)
		b := reply.DeadLettered[0]
		require.Equal(t, -1, b.Index)
		require.Equal(t, "poison", string(b.Payload))
		require.Equal(t, tooManyDeliveries, b.Reason)
		require.Equal(t, 2, b.Claims)
		require.Equal(t, []string{"poison"}, f.list(t, f.keys.dlq), "as the peer stores it")
		dead, err := f.DeadLetter(t.Context(), b.Entry)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueDeadLetter{
			Entry: b.Entry, Payload: []byte("poison"), ID: b.ID, Reason: b.Reason, Deliveries: 2, At: b.At,
		}, dead)
		h.Settle(t, storetest.Verdict(exchange.Ack, reply.Leases[0]))
		require.ElementsMatch(t, []string{"processing:lease_token_counter", "dlq"}, f.left(t))
	})
}

// TestQueuePoisonAndExpiryHaveNoLimitOfHundred covers a limit of the peer, which
// dead-letters and reclaims at most 100 messages in a poll.
func TestQueuePoisonAndExpiryHaveNoLimitOfHundred(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		h := f.holder(SourceOptions{MaxDeliveries: 1})
		const n = 700
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint("poison ", i)
		}
		f.put(t, texts...)
		require.Len(t, h.lapse(t, n), n)
		f.put(t, "good")
		deadLettered := 0
		reply := h.Claim(t, 5)
		for ; len(reply.Leases) == 0; reply = h.Claim(t, 5) {
			require.Zero(t, reply.Next, "there is more")
			deadLettered += len(reply.DeadLettered)
		}
		require.Equal(t, n, deadLettered+len(reply.DeadLettered))
		require.Equal(t, []string{"good"}, payloads(reply.Leases))

		f.put(t, texts...)
		g := f.holder(SourceOptions{})
		g.lapse(t, n)
		require.Equal(t, texts[:300], payloads(g.Claim(t, 300).Leases), "the oldest deadline first")
	})
}

func TestQueueKeepsCompletedAndFailed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		h := f.holder(SourceOptions{Completed: 2, Failed: 1, DeadCap: 1})
		f.put(t, "a", "b", "c", "d\x00é", "e\xff", "f", "g")
		l := h.Claim(t, 7).Leases
		reject := storetest.Verdict(exchange.DeadLetter, l[5])
		reject.Reason = "bad: é\nline"
		reply := h.Settle(t, storetest.Verdict(exchange.Ack, l[0]), storetest.Verdict(exchange.Ack, l[1]), storetest.Verdict(exchange.Ack, l[2]),
			storetest.Verdict(exchange.Fail, l[3]), storetest.Verdict(exchange.Fail, l[4]), reject)
		require.Empty(t, reply.Refused)
		require.Equal(t, []string{"c", "b"}, f.list(t, f.keys.completed))
		require.Equal(t, []string{"e\xff"}, f.list(t, f.keys.failed))
		require.Equal(t, 5, reply.DeadLettered[0].Index)
		last := storetest.Verdict(exchange.DeadLetter, l[6])
		last.Reason = "worse"
		h.Settle(t, last)
		dead, next, err := f.DeadLetters(t.Context(), "", "", 0)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, dead, 1, "the cap is one dead letter")
		require.Equal(t, "worse", dead[0].Reason)
		require.EqualValues(t, 1, f.rdb.ZCard(t.Context(), f.keys.places).Val())
	})
}

// TestQueueExchangeIsAnsweredAgain checks that a repeated exchange returns what is
// still held, and that a late one does nothing.
func TestQueueExchangeIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b", "c")
		h := f.holder(SourceOptions{MaxDeliveries: 1})
		h.lapse(t, 1)
		r := h.Request(2, time.Minute)
		first := h.Run(t, r)
		require.Equal(t, []string{"b", "c"}, payloads(first.Leases))
		require.Len(t, first.DeadLettered, 1)
		again := h.Run(t, r)
		require.Equal(t, first.Leases, again.Leases)
		require.Equal(t, first.DeadLettered, again.DeadLettered)
		require.Len(t, f.list(t, f.keys.processing), 2)
		require.LessOrEqual(t, again.Remaining, first.Remaining)

		r2 := h.Request(0, time.Minute)
		r2.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, first.Leases[0])}
		h.Run(t, r2)
		require.Empty(t, h.Run(t, r2).Refused, "not a second time")
		_, err := h.src.Exchange(t.Context(), r)
		require.ErrorIs(t, err, exchange.ErrStale)
	})
}

// TestQueueTellsEqualMessagesWithoutEnvelopeApart checks that each of several equal
// messages without an envelope is handled and removed once.
func TestQueueTellsEqualMessagesWithoutEnvelopeApart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		raw := "raw \x00\xff\"é"
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.pending, raw, raw, raw).Err())
		l := append(f.Claim(t, 2).Leases, f.Claim(t, 2).Leases...)
		require.Equal(t, []string{raw, raw, raw}, payloads(l))
		require.NotEqual(t, l[0].ID, l[1].ID)
		require.Len(t, f.list(t, f.keys.processing), 3)
		for i := range l {
			require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, l[i])).Refused)
			require.Len(t, f.list(t, f.keys.processing), 2-i)
		}
	})
}

func TestQueueWithoutVisibilityTimeout(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		h := f.holder(SourceOptions{AtMostOnce: true, Failed: 5})
		f.put(t, "a", "b", "c", "d")
		r := h.Request(3, time.Minute)
		reply := h.Run(t, r)
		require.Equal(t, []string{"a", "b", "c"}, payloads(reply.Leases))
		require.Equal(t, time.Minute, reply.Remaining)
		require.ElementsMatch(t, []string{"pending", "processing"}, f.left(t), "no lease is kept")
		require.Equal(t, reply.Leases, h.Run(t, r).Leases, "a lost reply loses no message")
		require.Empty(t, h.Extend(t, time.Minute, reply.Leases[0]).Refused)
		require.Empty(t, f.Claim(t, 1).Leases[0].Fault)
		require.Empty(t, f.Claim(t, 9).Leases, "a message is lost if a crash interrupts its handler")
		nack := storetest.Verdict(exchange.Nack, reply.Leases[1])
		require.Empty(t, h.Settle(t, storetest.Verdict(exchange.Ack, reply.Leases[0]), nack, storetest.Verdict(exchange.Release, reply.Leases[2])).Refused)
		require.Equal(t, []string{"b"}, f.list(t, f.keys.failed), "it is not delivered again")
		require.Len(t, h.Settle(t, storetest.Verdict(exchange.Ack, reply.Leases[0])).Refused, 1)
		require.Equal(t, []string{"c"}, payloads(h.Claim(t, 5).Leases), "released by a drain")
	})
}

// TestQueueLeavesNothingBehindInLongProcessingList checks that messages settled in
// the middle of a long list are removed later, at a bounded cost, and are not
// delivered again.
func TestQueueLeavesNothingBehindInLongProcessingList(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 3 * 512
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint(i)
		}
		f.put(t, texts...)
		var l []exchange.Lease
		for len(l) < n {
			l = append(l, f.Claim(t, 512).Leases...)
		}
		for i := n / 2; i < n/2+40; i++ {
			require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, l[i])).Refused)
			require.Len(t, f.Settle(t, storetest.Verdict(exchange.Ack, l[i])).Refused, 1)
		}
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, n-40, st.Processing)
		require.Zero(t, st.Unleased)
		for i := range l {
			if i < n/2 || i >= n/2+40 {
				require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, l[i])).Refused)
			}
		}
		require.Equal(t, []string{"processing:lease_token_counter"}, f.left(t))
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.gone).Val())
	})
}

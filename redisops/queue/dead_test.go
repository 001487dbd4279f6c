package queue

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// makeDead makes dead letters of new messages, whose reasons are counted.
func (f *fixture) makeDead(t testing.TB, from int, payloads ...string) {
	t.Helper()
	f.put(t, payloads...)
	var settle []exchange.Settlement
	for i, l := range f.Claim(t, len(payloads)).Leases {
		s := storetest.Verdict(exchange.DeadLetter, l)
		s.Reason = strconv.Itoa(from + i)
		settle = append(settle, s)
	}
	require.Len(t, settle, len(payloads))
	require.Empty(t, f.Settle(t, settle...).Refused)
}

// TestCapOfDeadLettersIsReachedInSteps checks that the cap removes the oldest
// dead letters with their records, a bounded number in each step.
func TestCapOfDeadLettersIsReachedInSteps(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i := range 4 {
			f.makeDead(t, 0, slices.Repeat([]string{"{}"}, 400)...)
			require.EqualValues(t, 400*(i+1), f.rdb.LLen(t.Context(), f.keys.dlq).Val())
		}
		capped := f.holder(SourceOptions{DeadCap: 3})
		for i := range 4 {
			capped.makeDead(t, i, "{}")
			require.EqualValues(t, []int{1100, 600, 100, 3}[i], f.rdb.LLen(t.Context(), f.keys.dlq).Val())
		}
		got, _ := f.deadTexts(t, 2)
		require.Equal(t, []string{"{}1", "{}2", "{}3"}, got)
		_, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, f.rdb.ZCard(t.Context(), f.keys.places).Val())
		require.EqualValues(t, 3+1, f.rdb.HLen(t.Context(), f.keys.records).Val())
	})
}

// TestDeadLettersDeepInsideLongListAreRemoved checks that dead letters in the
// middle of a long list are found through the place of another.
func TestDeadLettersDeepInsideLongListAreRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	const n = 110_000
	f.seed(t, "dead", n)
	require.NoError(t, f.rdb.LSet(t.Context(), f.keys.dlq, n/2, "Python's").Err())
	pythons, err := f.DeadLetter(t.Context(), redisHash("Python's"))
	require.NoError(t, err)
	outcome, _, err := f.RedriveLetter(t.Context(), pythons, "", PublishOptions{})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
	require.NoError(t, f.rdb.LSet(t.Context(), f.keys.dlq, n/2, "Python's").Err())
	gone := wakebelltype.QueueDeadLetter{Entry: redisHash("gone"), Payload: []byte("gone")}
	count, err := f.DiscardLetters(t.Context(), pythons, gone, pythons)
	require.NoError(t, err)
	require.Equal(t, 1, count)

	f.makeDead(t, 1, "Wakebell's")
	f.seed(t, "dead", 60_000)
	for range 60 {
		_, err = f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
	}
	after := strconv.Itoa(n - 2)
	dead, _, err := f.DeadLetters(t.Context(), "", after, 1)
	require.NoError(t, err)
	require.Equal(t, "1", dead[0].Reason)
	count, err = f.DiscardLetters(t.Context(), dead...)
	require.NoError(t, err)
	require.Equal(t, 1, count)
	_, err = f.DeadLetter(t.Context(), dead[0].Entry)
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
}

// TestDeadLetterIsRedrivenUnderItsOwnKey checks that the deduplication key of a
// dead-lettered message does not prevent its redrive.
func TestDeadLetterIsRedrivenUnderItsOwnKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		redrive := func(l wakebelltype.QueueDeadLetter) wakebelltype.QueueRedriveOutcome {
			outcome, _, err := f.RedriveLetter(t.Context(), l, "k", PublishOptions{})
			require.NoError(t, err)
			return outcome
		}
		for _, own := range []bool{false, true} {
			key := f.keys.deduplication + "k"
			require.NoError(t, f.rdb.Del(t.Context(), key).Err())
			dead := func() wakebelltype.QueueDeadLetter {
				require.True(t, f.publish(t, PublishOptions{OwnKeys: own}, NewMessage([]byte("x"), "k"))[0].Fresh)
				f.Settle(t, storetest.Verdict(exchange.DeadLetter, f.Claim(t, 1).Leases[0]))
				_, all := f.deadTexts(t, 10)
				return all[0]
			}
			first := dead()
			require.Equal(t, wakebelltype.QueueRedriveSucceeded, redrive(first))
			again := f.Claim(t, 1).Leases
			require.Len(t, again, 1)
			require.Equal(t, again[0].ID, f.rdb.Get(t.Context(), key).Val(), "the new message owns the key")
			f.Settle(t, storetest.Verdict(exchange.Ack, again[0]))
			require.NoError(t, f.rdb.Del(t.Context(), key).Err(), "its window has ended")

			second := dead()
			require.NoError(t, f.rdb.Set(t.Context(), key, "another", time.Hour).Err())
			require.Equal(t, wakebelltype.QueueRedriveDuplicate, redrive(second))
			n, err := f.DiscardLetters(t.Context(), second)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	})
}

// TestMessageThatWasReleasedLeavesProcessing checks that both entries of a message
// are removed from a long list if it was released in its middle, claimed again and
// settled there.
func TestMessageThatWasReleasedLeavesProcessing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 600
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strconv.Itoa(i)
		}
		f.put(t, texts...)
		l := append(f.Claim(t, n/2).Leases, f.Claim(t, n/2).Leases...)
		middle := l[n/2]
		f.Settle(t, storetest.Verdict(exchange.Release, middle))
		again := f.Claim(t, 1).Leases[0]
		require.Equal(t, middle.ID, again.ID)
		rest := l
		for range 2 { // moves it to the middle again
			more := make([]string, 150)
			for i := range more {
				more[i] = "more"
			}
			f.put(t, more...)
			rest = append(rest, f.Claim(t, 150).Leases...)
		}
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, again)).Refused)
		for _, other := range rest {
			if other.ID != middle.ID {
				require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, other)).Refused)
			}
		}
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, st.Processing)
		require.Empty(t, f.list(t, f.keys.processing))
	})
}

// TestLargeExchangeIsAnsweredAgain checks that many settlements are made in steps,
// and that a retry returns the answer of the first try.
func TestLargeExchangeIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 400
		f.put(t, slices.Repeat([]string{"x"}, n)...)
		leases := f.Claim(t, n).Leases
		f.put(t, "next")
		r := f.Request(1, time.Minute)
		for i, l := range leases {
			r.Settle = append(r.Settle, storetest.Verdict([]exchange.Verdict{exchange.Ack, exchange.DeadLetter}[i%2], l))
		}
		lost := leases[n-1]
		lost.Token = "0 lost"
		r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, lost))
		first := f.Run(t, r)
		require.Equal(t, []exchange.Refusal{{Index: n, Reason: exchange.Lost}}, first.Refused)
		require.Len(t, first.DeadLettered, n/2)
		for i, b := range first.DeadLettered {
			require.Equal(t, 2*i+1, b.Index)
		}
		again := f.Run(t, r)
		require.Equal(t, first.Refused, again.Refused)
		require.Equal(t, first.DeadLettered, again.DeadLettered)
		require.Equal(t, first.Leases, again.Leases)
		require.EqualValues(t, n/2, f.rdb.LLen(t.Context(), f.keys.dlq).Val())
	})
}

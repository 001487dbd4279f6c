package queue

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// makeDead makes dead letters of new messages, whose reasons are counted.
func (f *fixture) makeDead(t testing.TB, from int, payloads ...string) {
	t.Helper()
	f.put(t, payloads...)
	var settle []exchange.Settlement
	for i, l := range f.claim(t, len(payloads)).Leases {
		s := storetest.Verdict(exchange.Bury, l)
		s.Reason = strconv.Itoa(from + i)
		settle = append(settle, s)
	}
	require.Len(t, settle, len(payloads))
	require.Empty(t, f.settle(t, settle...).Refused)
}

// letterTexts reads all dead letters in pages, as payload and reason.
func (f *fixture) letterTexts(t testing.TB, page int) (texts []string, all []wakebelltype.QueueDeadLetter) {
	t.Helper()
	for next := "0"; next != ""; {
		var letters []wakebelltype.QueueDeadLetter
		var err error
		letters, next, err = f.DeadLetters(t.Context(), "", next, page)
		require.NoError(t, err)
		all = append(all, letters...)
	}
	for _, l := range all {
		texts = append(texts, string(l.Payload)+l.Reason)
	}
	return texts, all
}

func TestEqualDeadLettersKeepTheirRecordsOnEachPage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		var want []string
		for i := range 12 {
			payload := []string{"{}", "other", "{}"}[i%3]
			f.makeDead(t, i, payload)
			want = append(want, payload+strconv.Itoa(i))
		}
		for page := 1; page <= 13; page++ {
			got, all := f.letterTexts(t, page)
			require.Equal(t, want, got, "pages of %d", page)
			for i, l := range all {
				found, err := f.DeadLetter(t.Context(), l.Entry)
				require.NoError(t, err)
				require.Equal(t, all[i], found)
			}
		}
		_, all := f.letterTexts(t, 100)
		for _, i := range []int{5, 0, 11, 6} { // in the middle and at both ends
			n, err := f.DiscardLetters(t.Context(), all[i], all[i])
			require.NoError(t, err)
			require.Equal(t, 1, n)
			want[i] = ""
		}
		outcome, _, err := f.RedriveLetter(t.Context(), all[8], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		want[8] = ""
		got, _ := f.letterTexts(t, 3)
		require.Equal(t, slices.DeleteFunc(want, func(s string) bool { return s == "" }), got)
	})
}

// TestTheCapOfDeadLettersIsReachedInSteps checks that the cap removes the oldest
// dead letters with their records, a bounded number in each step.
func TestTheCapOfDeadLettersIsReachedInSteps(t *testing.T) {
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
		got, _ := f.letterTexts(t, 2)
		require.Equal(t, []string{"{}1", "{}2", "{}3"}, got)
		_, err := f.src.Heal(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, f.rdb.ZCard(t.Context(), f.keys.places).Val())
		require.EqualValues(t, 3+1, f.rdb.HLen(t.Context(), f.keys.records).Val())
	})
}

// TestDeadLettersAreSharedWithPython checks that Wakebell's dead letters keep their
// records while Python adds at the head and removes from the tail, and that
// Python's are listed, redriven and deleted as well.
func TestDeadLettersAreSharedWithPython(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		push := func(payloads ...any) { require.NoError(t, f.rdb.LPush(ctx, f.keys.dlq, payloads...).Err()) }
		take := func() { require.NoError(t, f.rdb.RPop(ctx, f.keys.dlq).Err()) }
		want := func(letters ...string) {
			t.Helper()
			got, _ := f.letterTexts(t, 2)
			require.Equal(t, letters, got)
		}
		push("old", "{}")
		f.makeDead(t, 1, "{}", "a")
		want("old", "{}", "{}1", "a2")
		push("{}", "p")
		want("old", "{}", "{}1", "a2", "{}", "p")
		f.makeDead(t, 3, "b")
		want("old", "{}", "{}1", "a2", "{}", "p", "b3")
		take()
		require.True(t, f.claim(t, 1).Orphans)
		_, err := f.src.Heal(ctx)
		require.NoError(t, err)
		require.False(t, f.claim(t, 1).Orphans)
		take()
		push("q")
		want("{}1", "a2", "{}", "p", "b3", "q")
		require.NoError(t, f.rdb.RPush(ctx, f.keys.dlq, "{}").Err())
		want("{}", "{}1", "a2", "{}", "p", "b3", "q")

		_, all := f.letterTexts(t, 100)
		n, err := f.DiscardLetters(ctx, all[3], all[4], all[1])
		require.NoError(t, err)
		require.Equal(t, 3, n)
		want("a2", "{}", "b3", "q") // equal dead letters of Python share an Entry
		outcome, _, err := f.RedriveLetter(ctx, all[6], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		want("a2", "{}", "b3")
		take()
		take()
		take()
		want()
		push("z")
		f.claim(t, 1)
		f.makeDead(t, 4, "b")
		want("z", "b4")
		require.NoError(t, f.rdb.Del(ctx, f.keys.dlq).Err())
		removed, err := f.src.Heal(ctx)
		require.NoError(t, err)
		require.Zero(t, removed, "all at once")
		require.Zero(t, f.rdb.Exists(ctx, f.keys.places, f.keys.records).Val())
	})
}

// TestABurstOfPythonsDeadLettersIsCaughtUpWith checks that a burst of dead letters
// from Python gets its places over several calls.
func TestABurstOfPythonsDeadLettersIsCaughtUpWith(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.makeDead(t, 1, "a")
	for i := range 25 {
		burst := make([]any, 100)
		for j := range burst {
			burst[j] = fmt.Sprint("p", i, "-", j)
		}
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, burst...).Err())
	}
	f.makeDead(t, 2, "b")
	got, _ := f.letterTexts(t, 1000)
	require.Equal(t, "a1", got[0])
	require.Equal(t, "b", got[2501], "it had no place yet")
	_, err := f.src.Heal(t.Context())
	require.NoError(t, err)
	f.makeDead(t, 3, "c")
	got, _ = f.letterTexts(t, 1000)
	require.Equal(t, []string{"a1", "c3"}, []string{got[0], got[2502]})
}

// TestDeadLettersDeepInsideALongListAreRemoved checks that dead letters in the
// middle of a long list are found through the place of another.
func TestDeadLettersDeepInsideALongListAreRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	const n = 110_000
	f.seed(t, "dead", n)
	require.NoError(t, f.rdb.LSet(t.Context(), f.keys.dlq, n/2, "Python's").Err())
	letter, err := f.DeadLetter(t.Context(), redisHash("Python's"))
	require.NoError(t, err)
	outcome, _, err := f.RedriveLetter(t.Context(), letter, "", PublishOptions{})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
	require.NoError(t, f.rdb.LSet(t.Context(), f.keys.dlq, n/2, "Python's").Err())
	gone := wakebelltype.QueueDeadLetter{Entry: redisHash("gone"), Payload: []byte("gone")}
	count, err := f.DiscardLetters(t.Context(), letter, gone, letter)
	require.NoError(t, err)
	require.Equal(t, 1, count)

	f.makeDead(t, 1, "ours")
	f.seed(t, "dead", 60_000)
	for range 60 {
		_, err = f.src.Heal(t.Context())
		require.NoError(t, err)
	}
	after := strconv.Itoa(n - 2)
	letters, _, err := f.DeadLetters(t.Context(), "", after, 1)
	require.NoError(t, err)
	require.Equal(t, "1", letters[0].Reason)
	count, err = f.DiscardLetters(t.Context(), letters...)
	require.NoError(t, err)
	require.Equal(t, 1, count)
	_, err = f.DeadLetter(t.Context(), letters[0].Entry)
	require.ErrorIs(t, err, redisops.ErrNotFound)
}

// TestRecordsOfAnOlderVersionAreLeftAlone checks that records of an older version
// have no effect.
func TestRecordsOfAnOlderVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		require.NoError(t, f.rdb.HSet(t.Context(), f.Name()+"::wakebell:letters", redisHash("{}"), "x 1 1 1 1\nab").Err())
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, "{}").Err())
		f.makeDead(t, 1, "{}")
		got, _ := f.letterTexts(t, 1)
		require.Equal(t, []string{"{}", "{}1"}, got)
	})
}

// TestADeadLetterIsRedrivenUnderItsOwnKey checks that the deduplication key of a
// dead-lettered message does not prevent its redrive.
func TestADeadLetterIsRedrivenUnderItsOwnKey(t *testing.T) {
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
				f.settle(t, storetest.Verdict(exchange.Bury, f.claim(t, 1).Leases[0]))
				_, all := f.letterTexts(t, 10)
				return all[0]
			}
			first := dead()
			require.Equal(t, wakebelltype.QueueRedriveSucceeded, redrive(first))
			again := f.claim(t, 1).Leases
			require.Len(t, again, 1)
			require.Equal(t, again[0].ID, f.rdb.Get(t.Context(), key).Val(), "it has the key now")
			f.settle(t, storetest.Verdict(exchange.Ack, again[0]))
			require.NoError(t, f.rdb.Del(t.Context(), key).Err(), "its window is over")

			second := dead()
			require.NoError(t, f.rdb.Set(t.Context(), key, "another", time.Hour).Err())
			require.Equal(t, wakebelltype.QueueRedriveDuplicate, redrive(second))
			n, err := f.DiscardLetters(t.Context(), second)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	})
}

// TestAMessageThatWasReleasedLeavesProcessing checks a message that was released in
// the middle of a long list, claimed again and settled there: two entries of the
// list are stale.
func TestAMessageThatWasReleasedLeavesProcessing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 600
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strconv.Itoa(i)
		}
		f.put(t, texts...)
		l := append(f.claim(t, n/2).Leases, f.claim(t, n/2).Leases...)
		middle := l[n/2]
		f.settle(t, storetest.Verdict(exchange.Release, middle))
		again := f.claim(t, 1).Leases[0]
		require.Equal(t, middle.ID, again.ID)
		rest := l
		for range 2 { // so that it is in the middle again
			more := make([]string, 150)
			for i := range more {
				more[i] = "more"
			}
			f.put(t, more...)
			rest = append(rest, f.claim(t, 150).Leases...)
		}
		require.Empty(t, f.settle(t, storetest.Verdict(exchange.Ack, again)).Refused)
		for _, other := range rest {
			if other.ID != middle.ID {
				require.Empty(t, f.settle(t, storetest.Verdict(exchange.Ack, other)).Refused)
			}
		}
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, st.Processing)
		require.Empty(t, f.list(t, f.keys.processing))
	})
}

// TestDroppingTheOldestIsBounded checks that a queue without an earlier cap shrinks
// by a bounded number of messages with each publish.
func TestDroppingTheOldestIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.seed(t, "pending", 10_000)
	o := PublishOptions{Cap: 9000, DropOldest: true}
	total := 0
	for i := 1; ; i++ {
		_, dropped, err := f.Publish(t.Context(), o, NewMessage([]byte("x"), ""))
		require.NoError(t, err)
		total += dropped
		require.LessOrEqual(t, dropped, 600)
		if f.rdb.LLen(t.Context(), f.keys.pending).Val() == 9000 {
			require.Equal(t, 1000+i, total)
			break
		}
		require.Less(t, i, 5)
	}
}

// TestKeysOfDroppedMessagesWithoutOwner checks that the key of a dropped message is
// released if its publisher stored the key; otherwise the key lasts for its window.
func TestKeysOfDroppedMessagesWithoutOwner(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.publish(t, PublishOptions{}, NewMessage([]byte("a"), "a"))
		drop := PublishOptions{Cap: 1, DropOldest: true}
		f.publish(t, drop, NewMessage([]byte("b"), "b"))
		f.publish(t, drop, NewMessage([]byte("c"), "c"))
		require.False(t, f.publish(t, PublishOptions{}, NewMessage([]byte("a"), "a"))[0].Fresh)
		require.Positive(t, f.rdb.PTTL(t.Context(), f.keys.deduplication+"a").Val(), "the key expires")
		require.True(t, f.publish(t, PublishOptions{}, NewMessage([]byte("b"), "b"))[0].Fresh)
	})
}

// TestALargeExchangeIsAnsweredAgain checks that many settlements are made in steps,
// and that a retry returns the answer of the first try.
func TestALargeExchangeIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 400
		f.put(t, slices.Repeat([]string{"x"}, n)...)
		leases := f.claim(t, n).Leases
		f.put(t, "next")
		r := f.request(1, time.Minute)
		for i, l := range leases {
			r.Settle = append(r.Settle, storetest.Verdict([]exchange.Verdict{exchange.Ack, exchange.Bury}[i%2], l))
		}
		lost := leases[n-1]
		lost.Token = "0 lost"
		r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, lost))
		first := f.run(t, r)
		require.Equal(t, []exchange.Refusal{{Index: n, Why: exchange.Lost}}, first.Refused)
		require.Len(t, first.Buried, n/2)
		for i, b := range first.Buried {
			require.Equal(t, 2*i+1, b.Index)
		}
		again := f.run(t, r)
		require.Equal(t, first.Refused, again.Refused)
		require.Equal(t, first.Buried, again.Buried)
		require.Equal(t, first.Leases, again.Leases)
		require.EqualValues(t, n/2, f.rdb.LLen(t.Context(), f.keys.dlq).Val())
	})
}

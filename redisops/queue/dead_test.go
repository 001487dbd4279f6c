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
)

// bury makes dead letters of new messages, whose reasons are counted.
func (f *fixture) bury(t testing.TB, from int, payloads ...string) {
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
func (f *fixture) letterTexts(t testing.TB, page int) (texts []string, all []DeadLetter) {
	t.Helper()
	for next := "0"; next != ""; {
		var letters []DeadLetter
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
			f.bury(t, i, payload)
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
		for _, i := range []int{5, 0, 11, 6} { // in the midst and at both ends
			n, err := f.DiscardLetters(t.Context(), all[i], all[i])
			require.NoError(t, err)
			require.Equal(t, 1, n)
			want[i] = ""
		}
		outcome, _, err := f.RedriveLetter(t.Context(), all[8], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, LetterRedriven, outcome)
		want[8] = ""
		got, _ := f.letterTexts(t, 3)
		require.Equal(t, slices.DeleteFunc(want, func(s string) bool { return s == "" }), got)
	})
}

// The cap takes the oldest, with their records, a bounded number at a time.
func TestTheCapOfDeadLettersIsReachedInSteps(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i := range 4 {
			f.bury(t, 0, slices.Repeat([]string{"{}"}, 400)...)
			require.EqualValues(t, 400*(i+1), f.rdb.LLen(t.Context(), f.keys.dlq).Val())
		}
		capped := f.holder(SourceOptions{DeadCap: 3})
		for i := range 4 {
			capped.bury(t, i, "{}")
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

// Python adds at the head and takes from the tail: what is known of ours stays
// with them, and Python's are listed, redriven and deleted as well.
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
		f.bury(t, 1, "{}", "a")
		want("old", "{}", "{}1", "a2")
		push("{}", "p")
		want("old", "{}", "{}1", "a2", "{}", "p")
		f.bury(t, 3, "b")
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
		want("a2", "{}", "b3", "q") // Python's equal ones share a name
		outcome, _, err := f.RedriveLetter(ctx, all[6], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, LetterRedriven, outcome)
		want("a2", "{}", "b3")
		take()
		take()
		take()
		want()
		push("z")
		f.claim(t, 1)
		f.bury(t, 4, "b")
		want("z", "b4")
		require.NoError(t, f.rdb.Del(ctx, f.keys.dlq).Err())
		removed, err := f.src.Heal(ctx)
		require.NoError(t, err)
		require.Zero(t, removed, "all at once")
		require.Zero(t, f.rdb.Exists(ctx, f.keys.places, f.keys.records).Val())
	})
}

// Letters of Python that come in a burst get their places over several calls.
func TestABurstOfPythonsDeadLettersIsCaughtUpWith(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.bury(t, 1, "a")
	for i := range 25 {
		burst := make([]any, 100)
		for j := range burst {
			burst[j] = fmt.Sprint("p", i, "-", j)
		}
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, burst...).Err())
	}
	f.bury(t, 2, "b")
	got, _ := f.letterTexts(t, 1000)
	require.Equal(t, "a1", got[0])
	require.Equal(t, "b", got[2501], "there was no place for it yet")
	_, err := f.src.Heal(t.Context())
	require.NoError(t, err)
	f.bury(t, 3, "c")
	got, _ = f.letterTexts(t, 1000)
	require.Equal(t, []string{"a1", "c3"}, []string{got[0], got[2502]})
}

// Letters that are deep inside are reached by another's place.
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
	require.Equal(t, LetterRedriven, outcome)
	require.NoError(t, f.rdb.LSet(t.Context(), f.keys.dlq, n/2, "Python's").Err())
	gone := DeadLetter{Entry: redisHash("gone"), Payload: []byte("gone")}
	count, err := f.DiscardLetters(t.Context(), letter, gone, letter)
	require.NoError(t, err)
	require.Equal(t, 1, count)

	f.bury(t, 1, "ours")
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

// What an older version kept of dead letters stops nothing.
func TestRecordsOfAnOlderVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		require.NoError(t, f.rdb.HSet(t.Context(), f.Name()+"::wakebell:letters", redisHash("{}"), "x 1 1 1 1\nab").Err())
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, "{}").Err())
		f.bury(t, 1, "{}")
		got, _ := f.letterTexts(t, 1)
		require.Equal(t, []string{"{}", "{}1"}, got)
	})
}

// The key of a message that died does not keep it from being published again.
func TestADeadLetterIsRedrivenUnderItsOwnKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		redrive := func(l DeadLetter) LetterOutcome {
			outcome, _, err := f.RedriveLetter(t.Context(), l, "k", PublishOptions{})
			require.NoError(t, err)
			return outcome
		}
		for _, own := range []bool{false, true} {
			key := f.keys.deduplication + "k"
			require.NoError(t, f.rdb.Del(t.Context(), key).Err())
			dead := func() DeadLetter {
				require.True(t, f.publish(t, PublishOptions{OwnKeys: own}, NewMessage([]byte("x"), "k"))[0].Fresh)
				f.settle(t, storetest.Verdict(exchange.Bury, f.claim(t, 1).Leases[0]))
				_, all := f.letterTexts(t, 10)
				return all[0]
			}
			first := dead()
			require.Equal(t, LetterRedriven, redrive(first))
			again := f.claim(t, 1).Leases
			require.Len(t, again, 1)
			require.Equal(t, again[0].ID, f.rdb.Get(t.Context(), key).Val(), "it has the key now")
			f.settle(t, storetest.Verdict(exchange.Ack, again[0]))
			require.NoError(t, f.rdb.Del(t.Context(), key).Err(), "its window is over")

			second := dead()
			require.NoError(t, f.rdb.Set(t.Context(), key, "another", time.Hour).Err())
			require.Equal(t, LetterDuplicate, redrive(second))
			n, err := f.DiscardLetters(t.Context(), second)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	})
}

// A message that was given back in the midst of a long list, claimed again and
// settled there, has two entries to leave out.
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
		midst := l[n/2]
		f.settle(t, storetest.Verdict(exchange.Release, midst))
		again := f.claim(t, 1).Leases[0]
		require.Equal(t, midst.ID, again.ID)
		rest := l
		for range 2 { // so that it is in the midst again
			more := make([]string, 150)
			for i := range more {
				more[i] = "more"
			}
			f.put(t, more...)
			rest = append(rest, f.claim(t, 150).Leases...)
		}
		require.Empty(t, f.settle(t, storetest.Verdict(exchange.Ack, again)).Refused)
		for _, other := range rest {
			if other.ID != midst.ID {
				require.Empty(t, f.settle(t, storetest.Verdict(exchange.Ack, other)).Refused)
			}
		}
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, st.Processing)
		require.Empty(t, f.list(t, f.keys.processing))
	})
}

// A queue that was not capped before shrinks by a bounded number of messages at
// each publish.
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

// The key of a message that is dropped is freed where its publisher kept which it
// is; of others nobody knows it, and it lasts for its window.
func TestKeysOfDroppedMessagesThatNobodyKnows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.publish(t, PublishOptions{}, NewMessage([]byte("a"), "a"))
		drop := PublishOptions{Cap: 1, DropOldest: true}
		f.publish(t, drop, NewMessage([]byte("b"), "b"))
		f.publish(t, drop, NewMessage([]byte("c"), "c"))
		require.False(t, f.publish(t, PublishOptions{}, NewMessage([]byte("a"), "a"))[0].Fresh)
		require.Positive(t, f.rdb.PTTL(t.Context(), f.keys.deduplication+"a").Val(), "it has an end")
		require.True(t, f.publish(t, PublishOptions{}, NewMessage([]byte("b"), "b"))[0].Fresh)
	})
}

// Many settlements are made in steps, and a retry is answered as the first try
// was.
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

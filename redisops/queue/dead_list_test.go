package queue

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// deadTexts reads all dead letters in pages, as payload and reason.
func (f *fixture) deadTexts(t testing.TB, page int) (texts []string, all []wakebelltype.QueueDeadLetter) {
	t.Helper()
	for next := "0"; next != ""; {
		var dead []wakebelltype.QueueDeadLetter
		var err error
		dead, next, err = f.DeadLetters(t.Context(), "", next, page)
		require.NoError(t, err)
		all = append(all, dead...)
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
			got, all := f.deadTexts(t, page)
			require.Equal(t, want, got, "pages of %d", page)
			for i, l := range all {
				found, err := f.DeadLetter(t.Context(), l.Entry)
				require.NoError(t, err)
				require.Equal(t, all[i], found)
			}
		}
		_, all := f.deadTexts(t, 100)
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
		got, _ := f.deadTexts(t, 3)
		require.Equal(t, slices.DeleteFunc(want, func(s string) bool { return s == "" }), got)
	})
}

func TestDeadLettersAreListedRedrivenAndDiscarded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		reject := func(payload, reason string) {
			f.put(t, payload)
			s := storetest.Verdict(exchange.DeadLetter, f.Claim(t, 1).Leases[0])
			s.Reason = reason
			require.Empty(t, f.Settle(t, s).Refused)
		}
		reject("twin", "first")
		reject("x", "bad")
		reject("twin", "second")
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, "Python's").Err())
		dead, next, err := f.DeadLetters(t.Context(), "", "", 3)
		require.NoError(t, err)
		require.Equal(t, "3", next)
		var reasons []string
		for _, l := range dead {
			reasons = append(reasons, string(l.Payload)+" "+l.Reason)
		}
		require.Equal(t, []string{"twin first", "x bad", "twin second"}, reasons)
		onTwo, _, err := f.DeadLetters(t.Context(), "", "2", 3)
		require.NoError(t, err)
		require.Equal(t, dead[2], onTwo[0], "a twin on a page of its own")
		rest, next, err := f.DeadLetters(t.Context(), "", next, 3)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Equal(t, "Python's", string(rest[0].Payload))
		require.Zero(t, rest[0].At)

		outcome, id, err := f.RedriveLetter(t.Context(), dead[0], "k", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		require.Len(t, id, 32)
		require.NotEqual(t, dead[0].ID, id)
		outcome, _, err = f.RedriveLetter(t.Context(), dead[2], "k", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveDuplicate, outcome)
		outcome, _, err = f.RedriveLetter(t.Context(), rest[0], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		outcome, _, err = f.RedriveLetter(t.Context(), rest[0], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveAbsent, outcome)
		require.Equal(t, []string{"twin", "Python's"}, payloads(f.Claim(t, 9).Leases))

		found, err := f.DeadLetter(t.Context(), dead[2].Entry)
		require.NoError(t, err)
		require.Equal(t, "second", found.Reason)
		n, err := f.DiscardLetters(t.Context(), dead...)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.dlq, f.keys.records).Val())
		_, err = f.DeadLetter(t.Context(), dead[2].Entry)
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	})
}

func TestDeadLettersAreReadToEndWithAnyPageSize(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const all = 40
		var want []string
		for i := range all {
			want = append(want, fmt.Sprint(i))
			require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, want[i]).Err())
		}
		for limit := 1; limit <= all+1; limit++ {
			var got []string
			for next := "0"; next != ""; {
				var page []wakebelltype.QueueDeadLetter
				var err error
				page, next, err = f.DeadLetters(t.Context(), "", next, limit)
				require.NoError(t, err)
				for _, l := range page {
					got = append(got, string(l.Payload))
				}
			}
			require.Equal(t, want, got, "pages of %d", limit)
		}
	})
}

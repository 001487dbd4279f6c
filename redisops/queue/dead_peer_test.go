package queue

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestDeadLettersAreSharedWithPython checks that Wakebell's dead letters keep their
// records while Python adds at the head and removes from the tail, and that
// Python's are listed, redriven and deleted as well.
func TestDeadLettersAreSharedWithPython(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		push := func(payloads ...any) { require.NoError(t, f.rdb.LPush(ctx, f.keys.dlq, payloads...).Err()) }
		take := func() { require.NoError(t, f.rdb.RPop(ctx, f.keys.dlq).Err()) }
		want := func(texts ...string) {
			t.Helper()
			got, _ := f.deadTexts(t, 2)
			require.Equal(t, texts, got)
		}
		push("old", "{}")
		f.makeDead(t, 1, "{}", "a")
		want("old", "{}", "{}1", "a2")
		push("{}", "p")
		want("old", "{}", "{}1", "a2", "{}", "p")
		f.makeDead(t, 3, "b")
		want("old", "{}", "{}1", "a2", "{}", "p", "b3")
		take()
		require.True(t, f.Claim(t, 1).Orphans)
		_, err := f.src.RemoveOrphans(ctx)
		require.NoError(t, err)
		require.False(t, f.Claim(t, 1).Orphans)
		take()
		push("q")
		want("{}1", "a2", "{}", "p", "b3", "q")
		require.NoError(t, f.rdb.RPush(ctx, f.keys.dlq, "{}").Err())
		want("{}", "{}1", "a2", "{}", "p", "b3", "q")

		_, all := f.deadTexts(t, 100)
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
		f.Claim(t, 1)
		f.makeDead(t, 4, "b")
		want("z", "b4")
		require.NoError(t, f.rdb.Del(ctx, f.keys.dlq).Err())
		swept, err := f.src.RemoveOrphans(ctx)
		require.NoError(t, err)
		require.Zero(t, swept.Removed, "all at once")
		require.Zero(t, f.rdb.Exists(ctx, f.keys.places, f.keys.records).Val())
	})
}

// TestBurstOfPythonsDeadLettersIsCaughtUpWith checks that a burst of dead letters
// from Python gets its places over several calls.
func TestBurstOfPythonsDeadLettersIsCaughtUpWith(t *testing.T) {
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
	got, _ := f.deadTexts(t, 1000)
	require.Equal(t, "a1", got[0])
	require.Equal(t, "b", got[2501], "Python's dead letter has no place yet")
	_, err := f.src.RemoveOrphans(t.Context())
	require.NoError(t, err)
	f.makeDead(t, 3, "c")
	got, _ = f.deadTexts(t, 1000)
	require.Equal(t, []string{"a1", "c3"}, []string{got[0], got[2502]})
}

// TestRecordsOfOlderVersionAreLeftAlone checks that records of an older version
// have no effect.
func TestRecordsOfOlderVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		require.NoError(t, f.rdb.HSet(t.Context(), f.Name()+"::wakebell:letters", redisHash("{}"), "x 1 1 1 1\nab").Err())
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, "{}").Err())
		f.makeDead(t, 1, "{}")
		got, _ := f.deadTexts(t, 1)
		require.Equal(t, []string{"{}", "{}1"}, got)
	})
}

func TestHealRemovesRecordsOfDeadLettersThatPythonRemoved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b")
		for _, l := range f.Claim(t, 2).Leases {
			f.Settle(t, storetest.Verdict(exchange.DeadLetter, l))
		}
		require.NoError(t, f.rdb.RPop(t.Context(), f.keys.dlq).Err())
		require.True(t, f.Claim(t, 1).Orphans)
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, swept.Removed)
		require.False(t, f.Claim(t, 1).Orphans)
		dead, _, err := f.DeadLetters(t.Context(), "", "", 0)
		require.NoError(t, err)
		require.NotZero(t, dead[0].At)
	})
}

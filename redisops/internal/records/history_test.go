package records

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

func newStore(t *testing.T, rdb *redis.Client) Store {
	t.Helper()
	name := redistest.Name(t)
	return Store{Runner: scripts.Runner{RDB: rdb}, Name: name, Counts: "counts:" + name, History: "history:" + name}
}

// allHistory lists the attempts in pages of a size.
func allHistory(t *testing.T, s Store, f wakebelltype.HistoryFilter, page int) (all []wakebelltype.Attempt) {
	t.Helper()
	for after := ""; ; {
		found, next, err := s.ReadHistory(t.Context(), f, after, page)
		require.NoError(t, err)
		require.True(t, page == 0 || len(found) <= page)
		all = append(all, found...)
		if after = next; after == "" {
			return all
		}
	}
}

func TestHistoryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), embedded} {
		s := newStore(t, rdb)
		at := time.Now().UTC().Truncate(time.Microsecond)
		var want []wakebelltype.Attempt
		for batch := range 3 {
			var attempts []wakebelltype.Attempt
			for i, kind := range []wakebelltype.EventKind{
				wakebelltype.EventAcked, wakebelltype.EventRetried, wakebelltype.EventDead, wakebelltype.EventDiscarded,
				wakebelltype.EventCrashed, wakebelltype.EventSuperseded, wakebelltype.EventCancelled, wakebelltype.EventLost,
			} {
				a := wakebelltype.Attempt{ID: fmt.Sprintf("id %d\n", i), Attempt: batch, Started: at, Took: time.Duration(i) * time.Millisecond, Outcome: kind}
				if i%2 == 1 {
					a.Error = "timed out: \n" + string(kind)
				}
				attempts = append(attempts, a)
			}
			require.NoError(t, s.WriteHistory(t.Context(), "host/1/w", attempts))
			want = append(want, attempts...)
		}
		for page := range 10 {
			got := allHistory(t, s, wakebelltype.HistoryFilter{}, page)
			require.Len(t, got, len(want))
			for i := range got {
				require.NotEmpty(t, got[i].Cursor)
				got[i].Cursor, want[i].Node = "", "host/1/w"
			}
			require.Equal(t, want, got)
		}
		for _, c := range []struct {
			filter wakebelltype.HistoryFilter
			want   int
		}{
			{wakebelltype.HistoryFilter{ID: "id 2\n"}, 3},
			{wakebelltype.HistoryFilter{Outcome: wakebelltype.EventLost}, 3},
			{wakebelltype.HistoryFilter{Error: "timed out"}, 12},
			{wakebelltype.HistoryFilter{Error: "timed out", Outcome: wakebelltype.EventRetried, ID: "id 1\n"}, 3},
			{wakebelltype.HistoryFilter{Since: at.Add(time.Hour)}, 0},
			{wakebelltype.HistoryFilter{Since: at}, 24},
		} {
			got := allHistory(t, s, c.filter, 2)
			require.Len(t, got, c.want, "%+v", c.filter)
			last, err := s.LastHistory(t.Context(), c.filter, 2)
			require.NoError(t, err)
			require.Equal(t, got[max(0, len(got)-2):], append(got[:0:0], last...), "%+v", c.filter)
		}
	}
}

func TestHistoryIsCapped(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	attempts := make([]wakebelltype.Attempt, MaxHistoryBatch)
	for i := range attempts {
		attempts[i] = wakebelltype.Attempt{ID: strings.Repeat("x", 600), Error: strings.Repeat("é", 200), Outcome: wakebelltype.EventRetried, Started: time.Now()}
	}
	for range 2*historyCap/MaxHistoryBatch + 5 {
		require.NoError(t, s.WriteHistory(t.Context(), "n", attempts))
	}
	all := allHistory(t, s, wakebelltype.HistoryFilter{}, 0)
	require.GreaterOrEqual(t, len(all), historyCap)
	require.Less(t, len(all), historyCap+MaxHistoryBatch)
	require.Len(t, all[0].ID, maxHistoryID)
	require.Len(t, all[0].Error, maxHistoryError)
	require.ErrorIs(t, s.WriteHistory(t.Context(), "n", nil), wakebelltype.ErrInvalid)
	_, err := s.LastHistory(t.Context(), wakebelltype.HistoryFilter{}, 1001)
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	for _, after := range []string{"x", "1-1", "1-1/x", "/1"} {
		_, _, err = s.ReadHistory(t.Context(), wakebelltype.HistoryFilter{}, after, 1)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid, after)
	}
}

func TestHistoryExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		s := newStore(t, rdb)
		write := func(id string) {
			require.NoError(t, s.WriteHistory(t.Context(), "n", []wakebelltype.Attempt{{ID: id, Outcome: wakebelltype.EventDead, Started: time.Now()}}))
		}
		write("old")
		<-time.After(historyAge - time.Hour)
		write("young")
		<-time.After(2 * time.Hour)
		write("new")
		all := allHistory(t, s, wakebelltype.HistoryFilter{}, 0)
		require.Len(t, all, 2)
		require.Equal(t, "young", all[0].ID)
		<-time.After(historyAge + time.Second)
		require.Zero(t, rdb.Exists(t.Context(), s.History).Val())
	})
}

// What other programs wrote is left out.
func TestHistoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	s, ctx := newStore(t, rdb), t.Context()
	for _, packed := range []string{"", "x", "1 1 1", "9999 1 1 1 1 a\n", "-1 0 1 1 1 a\n", "1 0 1 1 1 a\nx", "1 0 1 1 1 a\nx" + "bad"} {
		require.NoError(t, rdb.XAdd(ctx, &redis.XAddArgs{Stream: s.History, Values: []string{"until", "?", "attempts", packed}}).Err())
	}
	require.NoError(t, rdb.XAdd(ctx, &redis.XAddArgs{Stream: s.History, Values: []string{"odd", "x"}}).Err())
	all := allHistory(t, s, wakebelltype.HistoryFilter{}, 0)
	require.Len(t, all, 2)
	require.NoError(t, s.WriteHistory(ctx, "n", []wakebelltype.Attempt{{ID: "y", Outcome: wakebelltype.EventDead, Started: time.Now()}}))
}

package timers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// makeDead makes dead letters of new timers, each with a reason.
func (f *fixture) makeDead(t testing.TB, reason string, ids ...string) {
	t.Helper()
	for some := range slices.Chunk(ids, claimMost) {
		f.due(t, some...)
		var list []exchange.Settlement
		for _, l := range f.Claim(t, len(some)).Leases {
			s := storetest.Verdict(exchange.DeadLetter, l)
			s.Reason = reason
			list = append(list, s)
		}
		require.Len(t, list, len(some))
		require.Empty(t, f.Settle(t, list...).Refused)
	}
}

// addDead adds a dead letter that is as old as ago.
func (f *fixture) addDead(t testing.TB, id string, ago time.Duration) string {
	t.Helper()
	entry, err := f.rdb.XAdd(t.Context(), &redis.XAddArgs{
		Stream: f.key.Dead, ID: fmt.Sprintf("%d-0", f.now(t).Add(-ago).UnixMilli()),
		Values: []string{"id", id, "payload", "body of " + id, "reason", "old"},
	}).Result()
	require.NoError(t, err)
	return entry
}

// deadIDs returns the ids of all dead letters that a filter selects.
func (f *fixture) deadIDs(t testing.TB, filter wakebelltype.DeadFilter) (found []string) {
	t.Helper()
	for after := ""; ; {
		page, next, err := f.DeadLetters(t.Context(), f.topic, filter, after, 2)
		require.NoError(t, err)
		for _, d := range page {
			found = append(found, d.ID)
		}
		if after = next; next == "" {
			return found
		}
	}
}

func TestDeadLettersAreFiltered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		old := f.addDead(t, "old", 48*time.Hour)
		f.addDead(t, "less old", time.Hour)
		f.makeDead(t, "card: declined", "a", "b", "c")
		f.makeDead(t, "bank: card [unknown] 100%", "d")
		f.makeDead(t, "", "e")
		for name, c := range map[string]struct {
			wakebelltype.DeadFilter
			want []string
		}{
			"all":           {wakebelltype.DeadFilter{}, []string{"old", "less old", "a", "b", "c", "d", "e"}},
			"reason":        {wakebelltype.DeadFilter{Reason: "card"}, []string{"a", "b", "c", "d"}},
			"plain text":    {wakebelltype.DeadFilter{Reason: "[unknown] 100%"}, []string{"d"}},
			"prefix":        {wakebelltype.DeadFilter{ReasonPrefix: "card"}, []string{"a", "b", "c"}},
			"both":          {wakebelltype.DeadFilter{ReasonPrefix: "bank", Reason: "card"}, []string{"d"}},
			"older":         {wakebelltype.DeadFilter{OlderThan: 30 * time.Minute}, []string{"old", "less old"}},
			"much older":    {wakebelltype.DeadFilter{OlderThan: 24 * time.Hour}, []string{"old"}},
			"newer":         {wakebelltype.DeadFilter{NewerThan: 24 * time.Hour}, []string{"less old", "a", "b", "c", "d", "e"}},
			"between":       {wakebelltype.DeadFilter{OlderThan: 30 * time.Minute, NewerThan: 24 * time.Hour}, []string{"less old"}},
			"none":          {wakebelltype.DeadFilter{Reason: "nothing like it"}, nil},
			"entry":         {wakebelltype.DeadFilter{Entry: old}, []string{"old"}},
			"entry, wrong":  {wakebelltype.DeadFilter{Entry: "1-1"}, nil},
			"entry, reason": {wakebelltype.DeadFilter{Entry: old, Reason: "card"}, nil},
		} {
			require.Equal(t, c.want, f.deadIDs(t, c.DeadFilter), name)
		}
		one, err := f.DeadLetter(t.Context(), f.topic, old)
		require.NoError(t, err)
		require.Equal(t, "body of old", string(one.Payload))
		_, err = f.DeadLetter(t.Context(), f.topic, "1-1")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	})
}

// TestPagesOfDeadLettersAreBounded checks that a page examines at most 1,000 dead
// letters and 1 MiB, however many match.
func TestPagesOfDeadLettersAreBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		add := func(id, reason string, bytes int) {
			values := []any{"id", id, "payload", make([]byte, bytes), "reason", reason}
			require.NoError(t, f.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: f.key.Dead, Values: values}).Err())
		}
		for i := range 1200 {
			add(fmt.Sprint(i), "dull", 1)
		}
		for range 3 {
			add("big", "rare", 600<<10)
		}
		page, next, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{Reason: "rare"}, "", 0)
		require.NoError(t, err)
		require.Empty(t, page)
		require.NotEmpty(t, next)
		page, next, err = f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{Reason: "rare"}, next, 0)
		require.NoError(t, err)
		require.Len(t, page, 1, "a second one would be over 1 MiB")
		require.NotEmpty(t, next)
		require.Equal(t, []string{"big", "big", "big"}, f.deadIDs(t, wakebelltype.DeadFilter{Reason: "rare"}))
		n, err := f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{Reason: "dull"})
		require.NoError(t, err)
		require.EqualValues(t, 1200, n)
		require.Len(t, f.deadIDs(t, wakebelltype.DeadFilter{}), 3)
	})
}

func TestRedriveInEachState(t *testing.T) {
	t.Parallel()
	for state := range states {
		for _, overwrite := range []bool{false, true} {
			t.Run(fmt.Sprint(state, "/", overwrite), func(t *testing.T) {
				t.Parallel()
				onEach(t, func(t *testing.T, f *fixture) { f.tryRedrive(t, state, overwrite) })
			})
		}
	}
}

func (f *fixture) tryRedrive(t *testing.T, state string, overwrite bool) {
	t.Helper()
	entry := f.addDead(t, "a", time.Hour)
	states[state](t, f)
	before, err := f.Get(t.Context(), f.topic, "a")
	live := err == nil
	var reported []wakebelltype.RedrivenLetter
	done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{
		Filter: wakebelltype.DeadFilter{Entry: entry}, Overwrite: overwrite, In: time.Minute,
		Each: func(l wakebelltype.RedrivenLetter) { reported = append(reported, l) },
	})
	require.NoError(t, err)
	want, counts := wakebelltype.RedriveSucceeded, wakebelltype.RedriveResult{Redriven: 1}
	switch {
	case live && overwrite:
		want, counts = wakebelltype.RedriveOverwrote, wakebelltype.RedriveResult{Overwritten: 1}
	case live:
		want, counts = wakebelltype.RedriveSkippedLive, wakebelltype.RedriveResult{SkippedLive: 1}
	}
	require.Equal(t, []wakebelltype.RedrivenLetter{{Entry: entry, ID: "a", Outcome: want}}, reported)
	require.Equal(t, counts, done)
	_, err = f.DeadLetter(t.Context(), f.topic, entry)
	if want == wakebelltype.RedriveSkippedLive {
		require.NoError(t, err, "the dead letter stays")
		require.Equal(t, before, f.get(t, "a"))
		return
	}
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	after := f.get(t, "a")
	require.Equal(t, Timer{ID: "a", Due: after.Due, Activation: after.Due, Payload: []byte("body of a")}, after)
	require.WithinDuration(t, f.now(t).Add(time.Minute), after.Due, time.Minute/2)
}

func TestRedriveAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		names := numbered(250)
		f.makeDead(t, "boom", names...)
		f.makeDead(t, "boom", "twice")
		f.makeDead(t, "boom", "twice")
		f.makeDead(t, "other", "kept")
		require.NoError(t, f.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: f.key.Dead, Values: []string{"reason", "boom"}}).Err())
		hints := f.listen(t)
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Hint).Err())
		done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Reason: "boom"}, Rate: maxRate})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.RedriveResult{Redriven: 251, SkippedLive: 1, SkippedBroken: 1}, done)
		require.Zero(t, next(t, hints).In, "pollers receive a hint")
		require.Equal(t, []string{"twice", "kept", ""}, f.deadIDs(t, wakebelltype.DeadFilter{}))
		leases := append(f.Claim(t, 1000).Leases, f.Claim(t, 1000).Leases...)
		require.Equal(t, append(names, "twice"), storetest.IDs(leases), "in the order in which they were dead-lettered")
		require.Equal(t, 1, leases[0].Claims, "attempts start anew")
		require.True(t, f.rdb.SIsMember(t.Context(), f.keys.Topics, f.topic).Val())
	})
}

// TestRedriveDoesNotChaseItsOwn checks that timers that are dead-lettered during a
// redrive are not redriven again by it.
func TestRedriveDoesNotChaseItsOwn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.makeDead(t, "boom", numbered(30)...)
		n := 0
		_, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Rate: 1000, Each: func(wakebelltype.RedrivenLetter) {
			if n++; n == 1 {
				f.addDead(t, "died meanwhile", -time.Minute)
			}
		}})
		require.NoError(t, err)
		require.Equal(t, 30, n)
		require.Equal(t, []string{"died meanwhile"}, f.deadIDs(t, wakebelltype.DeadFilter{}))
	})
}

func TestRedriveSupersedesOnlyWithOverwrite(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.addDead(t, "a", time.Hour)
		lease := f.lease(t, time.Hour)
		_, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
		require.NoError(t, err)
		require.Empty(t, f.Extend(t, 2*time.Hour, lease).Refused)
		_, err = f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Overwrite: true})
		require.NoError(t, err)
		require.Equal(t, exchange.Superseded, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused[0].Reason)
		require.Equal(t, "body of a", string(f.get(t, "a").Payload))
	})
}

// 40 dead letters at 10 per second take 4 seconds less the last one, or less if the
// context ends.
func TestRedriveKeepsItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb)
		f.makeDead(t, "boom", numbered(40)...)
		began := time.Now()
		done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Rate: 10})
		require.NoError(t, err)
		require.EqualValues(t, 40, done.Redriven)
		require.Equal(t, 3900*time.Millisecond, time.Since(began))

		f.makeDead(t, "boom", numbered(40)...)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		done, err = f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{Rate: 10})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, 15, done.Redriven, 1)
		require.Len(t, f.deadIDs(t, wakebelltype.DeadFilter{}), 40-int(done.Redriven))
	})
}

func TestDeleteDead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.makeDead(t, "boom", "a", "b", "c")
		f.makeDead(t, "card", "d", "e")
		first, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 1)
		require.NoError(t, err)
		one := wakebelltype.DeadFilter{Entry: first[0].Entry}
		n, err := f.DeleteDead(t.Context(), f.topic, one)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		_, err = f.DeleteDead(t.Context(), f.topic, one)
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
		_, err = f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Filter: one})
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
		n, err = f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{ReasonPrefix: "boom"})
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		require.Equal(t, []string{"d", "e"}, f.deadIDs(t, wakebelltype.DeadFilter{}))
		for _, want := range []int64{2, 0} {
			n, err = f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{})
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
	})
}

// TestRedriveIntoFullRedis checks that a full Redis refuses to redrive, and that
// no dead letter is lost.
func TestRedriveIntoFullRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t))
	f.makeDead(t, "boom", "a", "b")
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
	require.ErrorIs(t, err, wakebelltype.ErrMemoryFull)
	require.Equal(t, []string{"a", "b"}, f.deadIDs(t, wakebelltype.DeadFilter{}))
	require.Zero(t, f.rdb.Exists(t.Context(), f.key.Timeline, f.key.Payloads).Val())
	n, err := f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{})
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

func TestDeadLettersAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	ctx := t.Context()
	var errs []error
	for _, bad := range []wakebelltype.DeadFilter{{Entry: "x"}, {OlderThan: -1}, {NewerThan: -1}} {
		_, _, list := f.DeadLetters(ctx, f.topic, bad, "", 0)
		_, redrive := f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{Filter: bad})
		_, remove := f.DeleteDead(ctx, f.topic, bad)
		errs = append(errs, list, redrive, remove)
	}
	_, _, after := f.DeadLetters(ctx, f.topic, wakebelltype.DeadFilter{Entry: "1-1"}, "1-1", 0)
	_, empty := f.DeadLetter(ctx, f.topic, "")
	_, rate := f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{Rate: maxRate + 1})
	_, topic := f.Redrive(ctx, "", wakebelltype.RedriveOptions{})
	_, topic2 := f.DeleteDead(ctx, "", wakebelltype.DeadFilter{})
	for _, err := range append(errs, after, empty, rate, topic, topic2) {
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	}
	for _, key := range []string{f.key.Timeline, f.key.Payloads, f.key.Leases, f.key.Dead, f.key.Hint} {
		require.NoError(t, f.rdb.Set(ctx, key, "{}", 0).Err())
	}
	_, redrive := f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{})
	_, remove := f.DeleteDead(ctx, f.topic, wakebelltype.DeadFilter{})
	require.ErrorIs(t, redrive, wakebelltype.ErrWrongType)
	require.ErrorIs(t, remove, wakebelltype.ErrWrongType)
}

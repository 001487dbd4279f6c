package shards

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// settled ends a change of the layout, as when nothing is left to move.
func (f *fixture) settled(t testing.TB) {
	t.Helper()
	_, err := f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil })
	require.NoError(t, err)
}

// moveRest moves all timers, also those that calls pin for a while.
func (f *fixture) moveRest(t testing.TB) {
	t.Helper()
	l, err := f.Layout(t.Context(), f.topic)
	require.NoError(t, err)
	for left := int64(1); left > 0; {
		f.moveAll(t, l)
		left, err = f.leftIn(t.Context(), f.topic, l)
		require.NoError(t, err)
	}
}

// announced announces a number of shards.
func (f *fixture) announced(t testing.TB, n int) {
	t.Helper()
	_, err := f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) {
		l.Shards = l.Count()
		return l.Announced(n, time.Now()), nil
	})
	require.NoError(t, err)
}

// changes are stages of the layout of a topic: it gets three shards, then two, then one.
func (f *fixture) changes() []func(t testing.TB) {
	all := []func(t testing.TB){func(testing.TB) {}}
	for _, n := range []int{3, 2, 1} {
		all = append(all,
			func(t testing.TB) { t.Helper(); f.announced(t, n) },
			func(t testing.TB) { t.Helper(); f.startMoving(t, n) },
			func(t testing.TB) { t.Helper(); f.moveRest(t) },
			func(t testing.TB) { t.Helper(); f.moveRest(t); f.settled(t) },
		)
	}
	return all
}

// withKeys are timers of which every second has a key, and some ids that are never scheduled.
func withKeys(n int, keyed bool) (entries []timers.Entry, ids []string) {
	entries = numbered(n)
	for i := range entries {
		entries[i].Payload = []byte("x")
		if keyed && i%2 == 0 {
			entries[i].Key = fmt.Sprintf("k%d", i%6)
		}
		ids = append(ids, entries[i].ID)
	}
	return entries, append(ids, "absent", "t001", "other", "absent")
}

// TestCallsAreAnsweredAsBeforeInEveryLayout makes calls with idempotency keys in each stage of
// several changes of the layout, and repeats all of them in each later stage.
func TestCallsAreAnsweredAsBeforeInEveryLayout(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{false, true} {
		t.Run(fmt.Sprintf("keyed %v", keyed), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			entries, ids := withKeys(20, keyed)
			var repeat []func(s *Store)
			for stage, change := range f.changes() {
				change(t)
				batch := timers.NewBatch("", len(entries))
				for i := range entries {
					e := entries[i]
					e.ID = fmt.Sprintf("%d %s", stage, e.ID)
					require.NoError(t, batch.Add(f.topic, &e))
				}
				write := timers.NewKey("owner", fmt.Sprintf("write %d", stage), nil)
				stored, err := f.Write(t.Context(), write, batch)
				require.NoError(t, err)
				_, err = f.Schedule(t.Context(), f.topic, entries...)
				require.NoError(t, err)
				cancel := timers.NewKey("owner", fmt.Sprintf("cancel %d", stage), nil)
				found, err := f.CancelKeyed(t.Context(), f.topic, cancel, ids...)
				require.NoError(t, err)
				require.Equal(t, slices.Concat(slices.Repeat([]wakebelltype.Presence{wakebelltype.PresencePending}, 20),
					slices.Repeat([]wakebelltype.Presence{wakebelltype.PresenceAbsent}, 4)), found)
				repeat = append(repeat, func(s *Store) {
					again, err := s.Write(t.Context(), write, batch)
					require.NoError(t, err, "the write of stage %d in stage %d", stage, len(repeat)-1)
					require.Equal(t, stored, again, "the write of stage %d in stage %d", stage, len(repeat)-1)
					other, err := s.CancelKeyed(t.Context(), f.topic, cancel, ids...)
					require.NoError(t, err, "the cancel of stage %d in stage %d", stage, len(repeat)-1)
					require.Equal(t, found, other, "the cancel of stage %d in stage %d", stage, len(repeat)-1)
				})
				f.repeatAll(t, entries, ids, repeat)
			}
		})
	}
}

// repeatAll repeats calls while their timers are scheduled again, and those that were absent
// are there.
func (f *fixture) repeatAll(t *testing.T, entries []timers.Entry, ids []string, repeat []func(s *Store)) {
	t.Helper()
	_, err := f.Schedule(t.Context(), f.topic, slices.Concat(entries, []timers.Entry{{ID: "absent", At: hour}, {ID: "other", At: hour}})...)
	require.NoError(t, err)
	before, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	for _, again := range repeat {
		again(f.Store)
		again(f.other(t))
	}
	after, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.Equal(t, before.Total, after.Total, "nothing was cancelled or stored again")
	_, err = f.Cancel(t.Context(), f.topic, ids...)
	require.NoError(t, err)
}

// TestCallThatWasCarriedOutInPartIsCompleted repeats calls of which each shard may have
// carried out its part, when the process died.
func TestCallThatWasCarriedOutInPartIsCompleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 3)
	entries, ids := withKeys(20, true)
	f.schedule(t, entries...)
	l, err := f.Layout(t.Context(), f.topic)
	require.NoError(t, err)
	cancel, write := timers.NewKey("owner", "cancel", nil), timers.NewKey("owner", "write", nil)
	found, err := f.at(l).CancelFound(t.Context(), l.Shard(f.topic, "", "k0"), cancel, "t000", "t001")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.PresencePending, found[0])

	part, all := timers.NewBatch("", 1), timers.NewBatch("", 20)
	for i := range entries {
		e := entries[i]
		e.ID = "new " + e.ID
		require.NoError(t, all.Add(f.topic, &e))
		if i == 7 {
			require.NoError(t, part.Add(f.topic, &e))
		}
	}
	first, err := f.Write(t.Context(), write, part)
	require.NoError(t, err)
	_, err = f.Cancel(t.Context(), f.topic, "new t007")
	require.NoError(t, err)

	f.schedule(t, entries[0])
	stages := f.changes()
	for i := 5; i < 8; i++ { // so that the rest is carried out in another layout
		stages[i](t)
	}
	for range 2 {
		found, err = f.CancelKeyed(t.Context(), f.topic, cancel, ids...)
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([]wakebelltype.Presence{wakebelltype.PresencePending}, 20), found[:20])
		done, err := f.Write(t.Context(), write, all)
		require.NoError(t, err)
		require.Equal(t, first[0], done[7])
		for i := range done {
			require.Equal(t, "new "+entries[i].ID, done[i].ID)
			require.Equal(t, wakebelltype.OutcomeCreated, done[i].Outcome)
		}
		_, err = f.Get(t.Context(), f.topic, "t000")
		require.NoError(t, err, "it was scheduled after it was cancelled")
		_, err = f.Get(t.Context(), f.topic, "new t007")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound, "it was cancelled after it was scheduled")
	}
}

// TestConcurrentRepetitionsTakeEffectOnce makes the same calls in several processes while the
// number of shards changes.
func TestConcurrentRepetitionsTakeEffectOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 2)
	const processes, rounds = 4, 12
	stages := f.changes()
	for round := range rounds {
		entries, ids := withKeys(9, round%2 == 0)
		var batches [processes]timers.Batch
		for i := range batches {
			batches[i] = timers.NewBatch("", len(entries))
			for _, e := range entries {
				e.Policy = wakebelltype.PolicyReplace
				require.NoError(t, batches[i].Add(f.topic, &e))
			}
		}
		write, cancel := timers.NewKey("owner", fmt.Sprintf("write %d", round), nil), timers.NewKey("owner", fmt.Sprintf("cancel %d", round), nil)
		var wrote [processes][]wakebelltype.Scheduled
		f.together(t, processes, stages[(2*round)%len(stages)], func(ctx context.Context, i int, s *Store) (err error) {
			wrote[i], err = s.Write(ctx, write, batches[i])
			return err
		})
		var found [processes][]wakebelltype.Presence
		f.together(t, processes, stages[(2*round+1)%len(stages)], func(ctx context.Context, i int, s *Store) (err error) {
			found[i], err = s.CancelKeyed(ctx, f.topic, cancel, ids...)
			return err
		})
		for i := range processes {
			require.Equal(t, wrote[0], wrote[i])
			require.Equal(t, found[0], found[i])
			require.NotContains(t, found[i][:9], wakebelltype.PresenceAbsent)
		}
	}
}

// together makes a call in several processes at once, beside a change.
func (f *fixture) together(t *testing.T, processes int, change func(t testing.TB), call func(ctx context.Context, i int, s *Store) error) {
	t.Helper()
	errs := make([]error, processes)
	var calls sync.WaitGroup
	for i := range processes {
		s := f.other(t)
		require.NoError(t, s.layouts.Renew(t.Context()))
		calls.Go(func() { errs[i] = call(t.Context(), i, s) })
	}
	change(t)
	calls.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// TestAnswersOfTimersAreStoredInTheirSlots checks what is stored of a call in a topic with
// shards.
func TestAnswersOfTimersAreStoredInTheirSlots(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 3)
	b := timers.NewBatch("", 2)
	require.NoError(t, b.Add(f.topic, &timers.Entry{ID: "a", At: hour}))
	require.NoError(t, b.Add(f.topic, &timers.Entry{ID: "b", At: hour, Key: "k"}))
	key := timers.NewKey("owner", "k", []byte("content"))
	_, err := f.Write(t.Context(), key, b)
	require.NoError(t, err)
	l, err := f.Layout(t.Context(), f.topic)
	require.NoError(t, err)
	name, _, _ := strings.Cut(key.Suffix(), ":")
	for id, of := range map[string]string{"a": "", "b": "k"} {
		stored := f.timers.Keys().Of(l.Shard(f.topic, id, of)).Keyed + ":" + name
		fields, err := f.timers.RDB.HGetAll(t.Context(), stored).Result()
		require.NoError(t, err)
		require.Equal(t, key.Content(), fields[""])
		require.Regexp(t, `^c \d+ -$`, fields[id])
		life, err := f.timers.RDB.PTTL(t.Context(), stored).Result()
		require.NoError(t, err)
		require.InDelta(t, timers.KeyLife.Hours(), life.Hours(), 1)
	}
	_, err = f.Write(t.Context(), timers.NewKey("owner", "k", []byte("other")), b)
	require.ErrorIs(t, err, wakebelltype.ErrKeyUsed)
}

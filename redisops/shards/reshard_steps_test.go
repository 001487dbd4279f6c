package shards

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTopicWhoseDeadLettersAreGoneIsResharded has streams of dead letters without entries,
// as a redrive and a deletion leave them.
func TestTopicWhoseDeadLettersAreGoneIsResharded(t *testing.T) {
	t.Parallel()
	end := map[string]func(t *testing.T, f *fixture) error{
		"redriven": func(t *testing.T, f *fixture) error {
			t.Helper()
			_, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
			require.NoError(t, err)
			_, err = f.CancelAll(t.Context(), f.topic)
			return err
		},
		"deleted": func(t *testing.T, f *fixture) error {
			t.Helper()
			_, err := f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{})
			return err
		},
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				other, _ := redistest.Embedded(t)
				f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
				f.schedule(t, timers.Entry{ID: "a"})
				f.deadLetterAll(t)
				require.NoError(t, end(t, f))
				l, err := f.Divide(t.Context(), f.topic, 2)
				require.NoError(t, err)
				require.Equal(t, 2, l.Count(), "it has no data, so it can be divided")
				<-time.After(settleAfter)
				l, err = f.Settle(t.Context(), f.topic)
				require.NoError(t, err)
				require.False(t, l.Moving)

				f.schedule(t, timers.Entry{ID: "a"}, timers.Entry{ID: "b"}, timers.Entry{ID: "c"}, timers.Entry{ID: "d"})
				f.deadLetterAll(t)
				require.NoError(t, end(t, f))
				var last Progress
				for p, err := range f.Reshard(t.Context(), f.topic, 3) {
					require.NoError(t, err)
					last = p
					require.Less(t, time.Since(time.UnixMilli(p.Layout.Since)), 3*settleAfter, "the change ends")
				}
				require.True(t, last.Done)

				f.schedule(t, timers.Entry{ID: "e"})
				f.deadLetterAll(t)
				require.NoError(t, end(t, f))
				_, to := pair(t, rdb, other, 1, 1)
				to.topic = f.topic
				require.True(t, f.moved(t, to, wakebelltype.MoveOptions{}).Done)
			})
		})
	}
}

// TestReshardingLeavesNoStatesOfKeys ends when no sweep has come since the last timer with a
// key was handled.
func TestReshardingLeavesNoStatesOfKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
		f.schedule(t, timers.Entry{ID: "a", Key: "k"})
		f.deadLetterAll(t)
		_, err := f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{})
		require.NoError(t, err)
		for _, err := range f.Reshard(t.Context(), f.topic, 2) {
			require.NoError(t, err)
		}
		k := f.timers.Keys().Of(f.topic)
		left, err := rdb.Exists(t.Context(), k.TimerKeys, k.KeyOrder, k.KeyStates).Result()
		require.NoError(t, err)
		require.Zero(t, left)
	})
}

// TestCallPinsKeyOnce has many timers of one key, each of which pins it.
func TestCallPinsKeyOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, timers.Entry{ID: "a", Key: "k", At: hour})
	l := f.startMoving(t, 2)
	list := []written{{id: "a", key: "k"}, {id: "b", key: "k"}, {id: "c", key: "k"}}
	k := f.timers.Keys().Of(f.topic)
	for calls := 1; calls <= 3; calls++ {
		for range 2 { // its answer was lost
			codes, err := f.pin(t.Context(), l, f.topic, fmt.Sprint("call-", calls), list)
			require.NoError(t, err)
			require.Equal(t, "ekk", codes[:1]+strings.ReplaceAll(codes[1:], "e", "k"))
		}
		pins, err := f.timers.RDB.HGet(t.Context(), k.Pins(), "kk").Result()
		require.NoError(t, err)
		require.Len(t, strings.Fields(pins), 2*calls)
	}
}

// TestEntryWithoutPayloadIsMoved has entries of the timeline whose payloads were removed
// by hand, one of them of a timer with a key.
func TestEntryWithoutPayloadIsMoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, numbered(3)...)
	f.schedule(t, timers.Entry{ID: "first", Key: "k", At: hour}, timers.Entry{ID: "second", Key: "k", At: hour})
	require.NoError(t, f.timers.RDB.HDel(t.Context(), f.timers.Keys().Of(f.topic).Payloads, "t001", "first").Err())
	l := f.startMoving(t, 2)
	f.moveAll(t, l)
	require.Empty(t, f.in(t, []string{f.topic}))
	require.Equal(t, []string{"first", "second", "t000", "t001", "t002"}, f.in(t, l.Names(f.topic)), "a claim decides on it")
	for _, id := range []string{"t001", "first"} {
		name := l.Shard(f.topic, id, map[string]string{"first": "k"}[id])
		exists, err := f.timers.RDB.HExists(t.Context(), f.timers.Keys().Of(name).Payloads, id).Result()
		require.NoError(t, err)
		require.False(t, exists)
	}
	used, err := f.used(t.Context(), f.topic)
	require.NoError(t, err)
	require.False(t, used)
}

// TestStepTakesFewTimers has keys with so many timers that a page of keys has far more
// than a page of timers.
func TestStepTakesFewTimers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	const keys, each = movePage, 30
	var all []timers.Entry
	for i := range keys * each { // the last page of the timeline has a timer of every key
		all = append(all, timers.Entry{ID: fmt.Sprint(i), Key: fmt.Sprint(i % keys), At: hour.Add(time.Duration(i) * time.Second)})
	}
	f.schedule(t, all...)
	l := f.startMoving(t, 2)
	for left := int64(keys * each); left > 0; {
		took, err := f.toShards(f.topic, l).take(t.Context(), f.topic)
		require.NoError(t, err)
		require.Positive(t, took.timers)
		require.LessOrEqual(t, took.timers, int64(movePage))
		require.NoError(t, f.deliver(t.Context(), f.topic, l, f.topic, took.token, took.batch))
		left -= took.timers
	}
	require.Len(t, f.in(t, l.Names(f.topic)), keys*each)
}

// TestStepTakesFewBytesOfDeadLetters has dead letters with large payloads.
func TestStepTakesFewBytesOfDeadLetters(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	const letters, size = 30, 100 << 10
	for i := range letters {
		f.schedule(t, timers.Entry{ID: fmt.Sprint(i), Payload: make([]byte, size)})
		f.deadLetterAll(t)
	}
	l := f.startMoving(t, 2)
	process := f.toShards(f.topic, l)
	k := f.timers.Keys().Of(f.topic)
	for left := int64(letters); left > 0; {
		moved, err := process.moveEntries(t.Context(), f.topic, k.Dead, ofDead)
		require.NoError(t, err)
		require.Positive(t, moved)
		require.LessOrEqual(t, moved, int64(moveBytes/size+1))
		left -= moved
	}
	dead, err := f.LastDead(t.Context(), f.topic, 100)
	require.NoError(t, err)
	require.Len(t, dead, letters)
}

// Between the announcement of a resharding and its start, MaxInFlight stays at least the new number
// of shards. If it is changed at the same moment, the resharding is refused, and its announcement ends.
func TestMaxInFlightIsAtLeastAnnouncedShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
		f.schedule(t, timers.Entry{ID: "a"})
		l, err := f.advance(t.Context(), f.topic, 4)
		require.NoError(t, err)
		require.Equal(t, 4, l.To)
		_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxInFlight: 3})
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxInFlight: 4})
		require.NoError(t, err)

		_, err = f.timers.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxInFlight: 3}) // it had read the layout before
		require.NoError(t, err)
		<-time.After(settleAfter)
		_, err = f.advance(t.Context(), f.topic, 4)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		l, err = f.Layout(t.Context(), f.topic)
		require.NoError(t, err)
		require.Zero(t, l.To)
		require.Equal(t, 1, l.Count())
		for p, err := range f.Reshard(t.Context(), f.topic, 2) {
			require.NoError(t, err, "%+v", p)
		}
	})
}

package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestCallFindsFirstTimerWithKeyWhileTimersMove checks clients that read the map before
// another one scheduled the first timer of the topic that has a key.
func TestCallFindsFirstTimerWithKeyWhileTimersMove(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const id, key = "keyed-0", "of keyed-0"
		l := f.startMoving(t, 7)
		require.NotEqual(t, l.Shard(f.topic, id, ""), l.Shard(f.topic, id, key), "or the call finds it in the shard of its id")
		calls := []func(s *Store) error{
			func(s *Store) error { _, err := s.Get(t.Context(), f.topic, id); return err },
			func(s *Store) error {
				_, err := s.Reschedule(t.Context(), f.topic, id, hour.Add(time.Hour), 0)
				return err
			},
			func(s *Store) error { _, err := s.RunNow(t.Context(), f.topic, id); return err },
		}
		early := make([]*Store, len(calls))
		for i := range early {
			early[i] = f.other(t)
			_, err := early[i].Get(t.Context(), f.topic, "absent")
			require.Error(t, err)
		}
		f.schedule(t, timers.Entry{ID: id, Key: key, At: hour})
		for i, call := range calls {
			require.NoError(t, call(early[i]))
		}
	})
}

// TestTimerThatHasMovedAheadOfItsKeyIsWrittenWhereItIs checks that no second timer of an id is
// made in the shards before, where a timer of its key is still, or again.
func TestTimerThatHasMovedAheadOfItsKeyIsWrittenWhereItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, timers.Entry{ID: "a", Key: "x", At: hour})
	l := f.startMoving(t, 2)
	name := l.Shard(f.topic, "b", "x")
	batch := timers.NewBatch("", 1)
	require.NoError(t, batch.Add(f.topic, &timers.Entry{ID: "b", Key: "x", At: hour}))
	there := batch.Divided(func(int, string, *timers.Entry) string { return name })
	require.NoError(t, there.Fence(func(string) (*timers.Fence, error) { return fenceOf(l), nil }))
	_, err := f.timers.Write(t.Context(), nil, there)
	require.NoError(t, err)

	again := f.schedule(t, timers.Entry{ID: "b", Key: "x", At: hour.Add(time.Second)}, timers.Entry{ID: "c", Key: "x", At: hour})
	require.Equal(t, wakebelltype.OutcomeReplaced, again[0].Outcome)
	require.Equal(t, []string{"a", "c"}, f.in(t, []string{f.topic}))
	require.Equal(t, []string{"b"}, f.in(t, []string{name}))
	f.moveAll(t, l)
	require.Equal(t, []string{"a", "b", "c"}, f.in(t, l.Names(f.topic)))
}

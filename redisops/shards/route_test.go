package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/timers"
)

// TestACallFindsTheFirstTimerWithAKeyWhileTimersMove checks clients that read the map before
// another one scheduled the first timer of the topic that has a key.
func TestACallFindsTheFirstTimerWithAKeyWhileTimersMove(t *testing.T) {
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

package recurring

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestUnreadableLastRun checks that an unreadable last run counts as none, and
// delays no run.
func TestUnreadableLastRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		runs := f.timers.Keys().Of(f.topic).Runs
		for i, text := range storetest.NoIntegers {
			require.NoError(t, f.rdb.HSet(t.Context(), runs, "a", "inc "+text).Err())
			put := recur.Put{Run: int64(i + 1), ID: fmt.Sprint(i), Topic: f.topic, Payload: []byte("x"), At: time.Unix(4e9, 0)}
			require.NoError(t, f.Send(t.Context(), "a", "inc", put))
			require.Len(t, f.ids(), i+1, "%q", text)
			require.NoError(t, f.Send(t.Context(), "a", "inc", put))
		}
	})
}

// TestOddLocksAndScoresOfBeat checks that a lock with any holder, and members of
// the schedule with any score, stop neither the look nor the firing.
func TestOddLocksAndScoresOfBeat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, score := range []float64{math.Inf(1), math.Inf(-1), 1e300, -5, 1.5} {
			name := fmt.Sprint("odd", i)
			f.put(name, recur.Raw{}, raw("1"))
			require.NoError(t, f.rdb.ZAdd(t.Context(), f.schedule(), redis.Z{Score: score, Member: f.entry(name)}).Err())
		}
		for i, text := range storetest.NoIntegers {
			name := fmt.Sprint("a", i)
			f.put(name, recur.Raw{}, raw("1"))
			require.NoError(t, f.rdb.Set(t.Context(), f.lock(), text, 0).Err())
			looked, err := f.Look(t.Context(), "", time.Hour, 0, 0, 100)
			require.NoError(t, err)
			reply := f.fire("ours", looked.Lock, f.firing(name, "1", name))
			require.Equal(t, []Outcome{Fired}, reply.Outcomes, "%q", text)
		}
	})
}

package joins

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestEndsAreNotedWhileRedisIsFull notes the last end of a join on a Redis without memory, which
// runs its timer.
func TestEndsAreNotedWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t)
	store, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	w := &world{New(shards.New(store)), t, rdb, Ref{Topic: "reports", ID: "r", Name: "first"}}
	a, b := w.part("a", true), w.part("b", true)
	w.create(a, b)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorContains(t, rdb.Set(t.Context(), "another", "x", 0).Err(), "OOM")
	require.NoError(t, w.Note(t.Context(), w.of, End{Part: a, End: wakebelltype.EndDone, Result: &progress.Result{Payload: []byte("x")}}))
	require.False(t, w.due())
	require.NoError(t, w.Note(t.Context(), w.of, End{Part: b, End: wakebelltype.EndDone}))
	require.True(t, w.due())
	require.Equal(t, []string{"a done", "b done"}, w.ends())
}

package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestBacklogHasRegisteredQueues reads the queues of the registry with a prefix, and those of the
// caller, which need not be there yet.
func TestBacklogHasRegisteredQueues(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	read := func(prefix string, own ...*Queue) []metrics.Queue {
		all, err := Backlog(t.Context(), s, prefix, own)
		require.NoError(t, err)
		return all
	}
	require.Empty(t, read(""))
	for _, name := range []string{"a.mail", "a.jobs", "b.mail"} {
		f := queueOn(t, rdb, name)
		f.publish(t, PublishOptions{}, NewMessage([]byte("1"), ""), NewMessage([]byte("2"), ""))
		if name == "a.jobs" {
			require.Len(t, f.Claim(t, 1).Leases, 1)
		}
	}
	require.NoError(t, rdb.SAdd(t.Context(), s.Keys().Queues, "a.not a\x00queue").Err())
	own, err := New(s, wakebelltype.QueueKeys{Name: "a.own"})
	require.NoError(t, err)

	all := read("a.", own)
	for i := range all {
		require.GreaterOrEqual(t, all[i].Oldest, time.Duration(0))
		all[i].Oldest = 0 // it depends on when it is read
	}
	require.Equal(t, []metrics.Queue{{Name: "a.jobs", Depth: 1, InFlight: 1}, {Name: "a.mail", Depth: 2}, {Name: "a.own"}}, all)
	require.Len(t, read(""), 3)

	require.NoError(t, rdb.Del(t.Context(), "a.mail::pending").Err())
	require.NoError(t, rdb.Set(t.Context(), "a.mail::pending", "x", 0).Err())
	require.Len(t, read("a."), 1, "one that cannot be read is left out")
}

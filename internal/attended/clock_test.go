package attended_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestClockOfRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := time.Now()
		ending := func(minute time.Time) func() (wakebelltype.Throughput, error) {
			return func() (wakebelltype.Throughput, error) {
				return wakebelltype.Throughput{Points: []wakebelltype.ThroughputCounts{{}, {At: minute}}}, nil
			}
		}
		denied := func() (wakebelltype.Throughput, error) { return wakebelltype.Throughput{}, errors.New("denied") }
		late := wakebelltype.Overview{Stats: wakebelltype.Stats{Due: 1, OldestDue: local.Add(-time.Hour), Lag: 2 * time.Hour}}
		require.Equal(t, local.Add(time.Hour), attended.Due(late))
		require.Equal(t, local.Add(time.Hour), attended.Now(late, denied))
		require.Zero(t, attended.Due(wakebelltype.Overview{}), "nothing is due")
		require.Equal(t, local, attended.Due(wakebelltype.Overview{Err: errors.New("denied")}))
		require.Equal(t, local, attended.Now(wakebelltype.Overview{}, denied))
		require.Equal(t, local, attended.Now(wakebelltype.Overview{}, ending(local.Add(-30*time.Second))))
		require.Equal(t, local.Add(5*time.Minute), attended.Now(wakebelltype.Overview{}, ending(local.Add(5*time.Minute))))
		require.WithinDuration(t, local.Add(-4*time.Minute), attended.Now(wakebelltype.Overview{}, ending(local.Add(-5*time.Minute))), time.Millisecond)
	})
}

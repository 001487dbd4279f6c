package layout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/progress"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A scan of all keys reports how far it is to a context that wants to know.
func TestDiscoveryReportsItsProgress(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	c := stacktest.Client(t, rdb, connection.Config{})
	const keys = 1500
	for i := range keys {
		require.NoError(t, rdb.Set(t.Context(), redistest.Name(t), i, 0).Err())
	}
	var last, total int64
	reports := 0
	ctx := progress.With(t.Context(), func(done, of int64) {
		require.GreaterOrEqual(t, done, last)
		last, total, reports = done, of, reports+1
	})
	for _, err := range c.Topics(ctx, true, wakebelltype.Page{}) {
		require.NoError(t, err)
	}
	require.EqualValues(t, keys, total)
	require.Equal(t, total, last)
	require.Greater(t, reports, 1)
}

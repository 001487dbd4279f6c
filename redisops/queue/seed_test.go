package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// seed fills a list of the queue: pending, processing with expired leases, or dead.
func (f *fixture) seed(t testing.TB, what string, n int) {
	t.Helper()
	list := map[string]string{"pending": f.keys.pending, "processing": f.keys.processing, "dead": f.keys.dlq}[what]
	keys := storetest.QueueKeys{List: list, Deadlines: f.keys.deadlines, Tokens: f.keys.tokens, Counts: f.keys.counts}
	require.NoError(t, storetest.FillQueue(t.Context(), f.rdb, keys, what, n))
}

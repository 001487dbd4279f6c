package storetest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// HoldsLittle checks that one held lease of each reply retains at most 8 KiB,
// independent of the rest of the reply.
func HoldsLittle(t *testing.T, replies, leases int, parse func() (*exchange.Reply, error)) {
	t.Helper()
	held, before := make([]exchange.Lease, replies), heap()
	for i := range held {
		r, err := parse()
		require.NoError(t, err)
		require.Len(t, r.Leases, leases)
		held[i] = r.Leases[i]
		held[i].Token = ""
	}
	require.Less(t, int64(heap())-int64(before), int64(replies*8<<10))
	require.NotEmpty(t, held[0].ID)
	runtime.KeepAlive(held)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

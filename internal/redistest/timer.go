package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// PutTimer writes a timer as another program does that shares the keys: in one
// transaction, as a node removes a payload that has no timer. The topic has its prefix,
// due is in seconds since 1970.
func PutTimer(t testing.TB, rdb redis.UniversalClient, topic, id string, payload []byte, due float64) {
	t.Helper()
	_, err := rdb.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.HSet(t.Context(), "timers_payloads:"+topic, id, payload)
		tx.ZAdd(t.Context(), "timers_timeline:"+topic, redis.Z{Score: due, Member: id})
		return nil
	})
	require.NoError(t, err)
}

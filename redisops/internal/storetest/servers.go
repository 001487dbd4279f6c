package storetest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/redistest"
)

// OnEach runs a test on a real Redis and on the embedded one.
func OnEach(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, redistest.Shared(t))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		rdb, _ := redistest.Embedded(t)
		test(t, rdb)
	})
}

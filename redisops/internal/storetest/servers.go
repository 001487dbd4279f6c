package storetest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/redistest"
)

// OnEach runs a test on a real Redis and on the embedded one, each with a fixture of
// its own. Under the race detector it runs on the real one only: the embedded one takes many
// times as long there, the detector sees nothing in it that it does not see on the other,
// and make test runs these packages without it too.
func OnEach[F any](t *testing.T, fixture func(t testing.TB, rdb *redis.Client) F, test func(t *testing.T, f F)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, fixture(t, redistest.Shared(t)))
	})
	if redistest.Raced {
		return
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		rdb, _ := redistest.Embedded(t)
		test(t, fixture(t, rdb))
	})
}

package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded"
)

// Embedded starts a server inside the test process and connects to it in
// memory, until the end of the test. Called inside a synctest bubble, all of it
// lives there: the server's TIME is the bubble's clock, the lives of keys follow
// it, and a command waits in virtual time. A test of the whole stack takes
// package wakebelltest instead.
//
// It is an imitation of Redis: what is shown on it is to be shown on a real
// server too.
func Embedded(t testing.TB, opts ...func(*redis.Options)) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	s := embedded.Start()
	t.Cleanup(s.Close)
	options := s.Options()
	options.PoolSize = plenty
	return newClient(t, options, opts...), s.Miniredis()
}

// plenty is more connections than tests need: to wait for one, go-redis takes a
// timer from a pool that all clients of the process share, and a timer must not
// leave its bubble.
const plenty = 5000

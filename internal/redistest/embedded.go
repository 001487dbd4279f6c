package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded"
)

// Embedded starts an in-process server and returns a client of it, until the end of
// the test. Inside a synctest bubble the server's TIME and the expiry of keys follow
// the bubble's clock, and a blocking command waits in virtual time. A test of the
// whole stack uses package wakebelltest instead.
//
// The server is an imitation of Redis (miniredis): test the same on a real server.
func Embedded(t testing.TB, opts ...func(*redis.Options)) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	s := embedded.Start()
	t.Cleanup(s.Close)
	options := s.Options()
	options.PoolSize = plenty
	return newClient(t, options, opts...), s.Miniredis()
}

// plenty is more connections than tests need. To wait for a free one, go-redis takes a
// timer from a pool that all clients of the process share, and a timer must not leave
// its bubble.
const plenty = 5000

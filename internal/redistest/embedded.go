package redistest

import (
	"context"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Embedded starts a server inside the test process and connects to it in
// memory, until the end of the test. Called inside a synctest bubble, all of it
// lives there: the server's TIME is the bubble's clock, and a command waits in
// virtual time. The lives of keys move only with FastForward of the server.
//
// It is an imitation of Redis: what is shown on it is to be shown on a real
// server too.
func Embedded(t testing.TB, opts ...func(*redis.Options)) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	t.Cleanup(func() {
		m.Close()
		m.CtxCancel() // Close does not, when nothing ever connected
	})
	c := newClient(t, &redis.Options{
		// An IP literal: a host name would be resolved by goroutines that
		// outlive a bubble. The port is never dialed.
		Addr:   "127.0.0.1:6379",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	}, opts...)
	return c, m
}

// Package embedded runs an in-process imitation of Redis (miniredis), for demos
// and tests without a server. It stores nothing on disk, is not reachable from
// other processes, and is slower than Redis.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var errClosed = errors.New("embedded redis: closed")

// Server is a server in memory. It uses the clock of the process, for the expiry
// of keys as well.
type Server struct {
	m *miniredis.Miniredis

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
}

// Start starts a server. The caller closes it.
func Start() *Server {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	return &Server{m: m, conns: map[*conn]struct{}{}}
}

// Client returns a client of the server. The caller closes it before the server.
func (s *Server) Client() *redis.Client { return redis.NewClient(s.Options()) }

// Options returns the options of a client that connects to the server.
func (s *Server) Options() *redis.Options { return ClientOptions(s.dial) }

// ClientOptions returns the options of a client of a server in this process, which
// connects with dial.
func ClientOptions(dial func(ctx context.Context, network, address string) (net.Conn, error)) *redis.Options {
	return &redis.Options{
		// An address that is never dialed; an IP literal needs no resolver.
		Addr:            "127.0.0.1:6379",
		Dialer:          dial,
		DisableIdentity: true,
		ConnMaxIdleTime: -1, // a connection in memory does not go stale
		// Replies are not lost, only late. A client that timed out would retry a
		// command that the server still runs.
		ReadTimeout: time.Minute,
		// No call waits for a connection: the timer of a wait in a synctest bubble would go
		// to a pool of go-redis, and end the process when it is used outside.
		PoolSize: 1024,
		// The server does not support them; probing costs each connection a command.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Miniredis returns the server itself, for tests that make it fail.
func (s *Server) Miniredis() *miniredis.Miniredis { return s.m }

func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	pipe, err := s.m.Dial()
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	c := newConn(pipe, s.forget)
	s.conns[c] = struct{}{}
	return c, nil
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close stops the server and closes its connections. Later dials are refused:
// miniredis would start again, and nothing would stop it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // its data is dropped anyway
	}
	s.m.Close()
	s.m.CtxCancel() // Close does not do it if no client ever connected
}

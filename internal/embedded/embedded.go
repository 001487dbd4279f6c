// Package embedded runs a Redis inside the process, for a demo or a try
// without a server. It is an imitation (miniredis): it keeps nothing on disk,
// nobody outside the process can reach it, and it is slower than Redis.
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

// Server is a server in memory. Its clock, the lives of its keys included, is
// that of the process.
type Server struct {
	m *miniredis.Miniredis

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
}

// Start starts a server; Close ends it.
func Start() *Server {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	return &Server{m: m, conns: map[*conn]struct{}{}}
}

// Client connects to the server, in memory. The caller closes the client,
// before the server.
func (s *Server) Client() *redis.Client { return redis.NewClient(s.Options()) }

// Options are those of a client that connects to the server, in memory.
func (s *Server) Options() *redis.Options {
	return &redis.Options{
		// An address that is never dialed; an IP literal needs no resolver.
		Addr:            "127.0.0.1:6379",
		Dialer:          s.dial,
		DisableIdentity: true,
		ConnMaxIdleTime: -1, // a connection in memory does not go stale
		// Nor does a reply get lost: who waits for one that is late must not ask
		// again, for the outcome may be another.
		ReadTimeout: time.Minute,
		// The server knows nothing of them; asking costs each connection a try.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Miniredis is the imitation itself, for tests that put it in trouble.
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
	c := newConn(pipe, s.left)
	s.conns[c] = struct{}{}
	return c, nil
}

func (s *Server) left(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends the server and its connections; what it kept is gone. Who dials
// afterwards is refused: miniredis would start anew, for nobody to end.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // it is over either way
	}
	s.m.Close()
	s.m.CtxCancel() // Close does not, when nothing ever connected
}

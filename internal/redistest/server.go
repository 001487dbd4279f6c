package redistest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startAttempts is the number of ports to try.
const startAttempts = 20

// Server is a redis-server process of a single test. Its methods may be called from
// any goroutine, but Kill, Stop, Restart, Pause and Resume not concurrently.
type Server struct {
	// Addr is host:port. It stays the same over Restart.
	Addr string

	port int
	dir  string
	argv []string // all arguments

	mu   sync.Mutex
	proc *process
}

// Start runs a redis-server until the end of the test. It stores nothing on disk
// unless args say otherwise: they are options of redis-server that override the
// defaults ("--appendonly", "yes"). The test fails if redis-server is not installed or
// does not answer within 30 seconds.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	return startWith(t, dir, func(port int) ([]string, error) { return serverArgs(port, dir, args), nil })
}

// startWith is Start with arguments that depend on the port.
func startWith(t testing.TB, dir string, argv func(port int) ([]string, error)) *Server {
	t.Helper()
	s, err := start(dir, argv)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.stopAfter(t)
	return s
}

// stopAfter stops the server at the end of the test, and shows its output if that failed.
func (s *Server) stopAfter(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("redis-server on %s:\n%s", s.Addr, s.current().output)
		}
	})
}

// Client connects to the server until the end of the test. The opts change the
// client's options.
func (s *Server) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, &redis.Options{Addr: s.Addr}, opts...)
}

// Kill ends the server with SIGKILL, as a crash would.
func (s *Server) Kill() { s.current().kill() }

// Stop ends the server with SIGTERM, and with SIGKILL after 20 seconds. It may have
// ended already.
func (s *Server) Stop() { s.current().stop() }

// Pause suspends the server with SIGSTOP: connections stay open and are accepted, but
// get no answers.
func (s *Server) Pause() { s.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.Signal(syscall.SIGCONT) }

// Signal sends a signal to the server, which may have ended.
func (s *Server) Signal(sig syscall.Signal) { s.current().signal(sig) }

// Restart starts the server again with the same port, directory and arguments, after
// a Stop if it is still running. It is then empty unless its arguments enable
// persistence.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	var err error
	for range startAttempts {
		var p *process
		if p, err = launch(s.port, s.dir, s.argv); err == nil {
			s.mu.Lock()
			s.proc = p
			s.mu.Unlock()
			return
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	t.Fatalf("redistest: restart on %s: %v", s.Addr, err)
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// start runs a server on a free port. If another process takes the port before the
// server binds it, start tries the next one.
func start(dir string, argv func(port int) ([]string, error)) (*Server, error) {
	var errs []error
	for range startAttempts {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		args, err := argv(port)
		if err != nil {
			return nil, err
		}
		p, err := launch(port, dir, args)
		if err == nil {
			return &Server{Addr: address(port), port: port, dir: dir, argv: args, proc: p}, nil
		}
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no port after %d attempts: %w", startAttempts, errors.Join(errs...))
}

// startTemp is start in a directory that the caller removes with s.dir.
func startTemp(args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, fmt.Errorf("directory for redis-server: %w", err)
	}
	s, err := start(dir, func(port int) ([]string, error) { return serverArgs(port, dir, args), nil })
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// answerTimeout is how long clients wait for a reply unless a test sets another
// timeout. It is long because a retry after a stall of a few seconds would run a
// command twice.
const answerTimeout = 20 * time.Second

func newClient(t testing.TB, o *redis.Options, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o.ReadTimeout = answerTimeout
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewClient(o)
	closeAfter(t, c)
	return c
}

func closeAfter(t testing.TB, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Errorf("redistest: close client: %v", err)
		}
	})
}

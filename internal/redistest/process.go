package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	readyTimeout = 30 * time.Second
	readyPoll    = 5 * time.Millisecond
	stopTimeout  = 20 * time.Second

	// Ports are below the range that systems use for outgoing connections: one of
	// those could otherwise have the port while the server restarts.
	minPort, maxPort = 20_000, 32_000

	outputLimit = 64 << 10
)

var (
	errMissing   = errors.New("redis-server is not in PATH: `make test` installs it")
	errPortTaken = errors.New("port is taken")
)

// process is a redis-server process. A server that is restarted has another one.
type process struct {
	cmd    *exec.Cmd
	output *Output
	done   chan struct{} // closed when the process has ended and is reaped
}

// serverArgs returns the arguments of a server that stores nothing on disk unless args
// say otherwise.
func serverArgs(port int, dir string, args []string) []string {
	return append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
}

// launch starts a redis-server and waits until it answers on the port.
func launch(port int, dir string, argv []string) (*process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errMissing
	}
	p := &process{cmd: exec.Command(path, argv...), output: &Output{}, done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = ChildAttr()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the output says how it ended
	}()

	if err := p.awaitReady(port); err != nil {
		p.kill()
		if strings.Contains(p.output.String(), "Address already in use") {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return nil, fmt.Errorf("%w; its output:\n%s", err, p.output)
	}
	return p, nil
}

// awaitReady waits until this process serves the port. Another server may have taken
// the port first, and would answer as well.
func (p *process) awaitReady(port int) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	c := redis.NewClient(&redis.Options{
		Addr: address(port), Protocol: 2, MaxRetries: -1, PoolSize: 1, DisableIdentity: true,
	})
	defer func() { _ = c.Close() }()

	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	var last error
	for {
		if last = p.answers(ctx, c); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("redis-server ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("redis-server did not answer in %v: %w", readyTimeout, last)
		case <-tick.C:
		}
	}
}

func (p *process) answers(ctx context.Context, c *redis.Client) error {
	if err := c.Ping(ctx).Err(); err != nil {
		if redis.HasErrorPrefix(err, "NOAUTH") {
			return p.listens() // a server with a password
		}
		return fmt.Errorf("ping: %w", err)
	}
	info, err := c.InfoMap(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	if pid := info["Server"]["process_id"]; pid != strconv.Itoa(p.cmd.Process.Pid) {
		return fmt.Errorf("process %s has the port", pid)
	}
	return nil
}

// listens checks the output of the server for the message that it listens.
func (p *process) listens() error {
	if !strings.Contains(p.output.String(), "Ready to accept connections") {
		return errors.New("not yet ready to accept connections")
	}
	return nil
}

func (p *process) signal(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // fails only when the process has ended
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) stop() {
	p.signal(syscall.SIGCONT) // a paused one would not see the SIGTERM
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// freePort returns a port of 127.0.0.1 that was free a moment ago. No other test
// process takes it while this one runs, so a server that is down until its Restart
// gets it back.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := minPort + rand.IntN(maxPort-minPort)
		if last = reserve(port); last != nil {
			continue
		}
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("probe port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port: %w", last)
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Output is what a process writes: the last 64 KiB. It may be read meanwhile.
type Output struct {
	mu  sync.Mutex
	buf []byte
}

func (w *Output) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if over := len(w.buf) - outputLimit; over > 0 {
		w.buf = append(w.buf[:0], w.buf[over:]...)
	}
	return len(p), nil
}

func (w *Output) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.buf)
}

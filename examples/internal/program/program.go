// Package program runs an example as a separate process: a second process of the test
// binary.
package program

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

const (
	variable = "WAKEBELL_EXAMPLE_RUNS"
	patience = 30 * time.Second
)

// Main is the TestMain of an example with the given main function.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) != "" {
		main()
		os.Exit(0)
	}
	redistest.Main(m)
}

// Program is a running example.
type Program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout chan string // lines
	stderr bytes.Buffer
}

// Both runs f with the example on an in-process Redis and on a real one.
func Both(t *testing.T, f func(*testing.T, *Program), env ...string) {
	t.Helper()
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, Start(t, append(env, "WAKEBELL_REDIS=")...))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, Start(t, append(env, "WAKEBELL_REDIS=redis://"+redistest.SharedAddr(t))...))
	})
}

// Start starts the example with additional environment variables.
func Start(t *testing.T, env ...string) *Program {
	t.Helper()
	return StartAs(t, nil, env...)
}

// StartAs is Start with arguments.
func StartAs(t *testing.T, args []string, env ...string) *Program {
	t.Helper()
	p := &Program{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], args...), stdout: make(chan string, 1000)}
	p.cmd.Env = append(append(os.Environ(), variable+"=1"), env...)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.stdout)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.stdout <- lines.Text()
		}
	}()
	return p
}

// Line returns the next line that the example prints.
func (p *Program) Line() string {
	p.t.Helper()
	line, ok := p.next()
	require.True(p.t, ok, "the example has ended: %s", &p.stderr)
	return line
}

func (p *Program) next() (string, bool) {
	p.t.Helper()
	select {
	case line, ok := <-p.stdout:
		return line, ok
	case <-time.After(patience):
		require.FailNow(p.t, "the example prints nothing")
		return "", false
	}
}

// Terminate sends SIGTERM, as a service manager does.
func (p *Program) Terminate() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// Kill ends the example with SIGKILL.
func (p *Program) Kill() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // it was killed
}

// Rest returns the remaining lines, and fails the test if the exit code is not 0.
func (p *Program) Rest() string {
	p.t.Helper()
	var lines []string
	for {
		line, ok := p.next()
		if !ok {
			break
		}
		lines = append(lines, line)
	}
	require.NoError(p.t, p.cmd.Wait(), p.stderr.String())
	return strings.Join(lines, "\n") + "\n"
}

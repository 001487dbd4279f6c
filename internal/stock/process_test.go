package stock_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is another process of this binary.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	end func()

	mu    sync.Mutex
	lines map[string]int
}

// start starts one, which is killed at the end of the test.
func start(t testing.TB, role string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0]), lines: map[string]int{}} // this binary
	p.cmd.Env = append(os.Environ(), roleVar+"="+role+" "+strings.Join(args, " "))
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.in = in
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.lines[lines.Text()]++
			p.mu.Unlock()
		}
	})
	p.end = sync.OnceFunc(func() {
		_ = p.cmd.Process.Kill()
		reading.Wait()
		_ = p.cmd.Wait() // it was killed
	})
	t.Cleanup(p.end)
	return p
}

// kill is kill -9.
func (p *process) kill() { p.end() }

// send gives it a command.
func (p *process) send(words ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, strings.Join(words, " ")+"\n")
	require.NoError(p.t, err)
}

// said is how often it has printed a line.
func (p *process) said(line string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[line]
}

// wait waits until it has printed a line so often.
func (p *process) wait(line string, times int) {
	p.t.Helper()
	if p.said(line) < times {
		require.Eventually(p.t, func() bool { return p.said(line) >= times }, patience, 5*time.Millisecond, line)
	}
}

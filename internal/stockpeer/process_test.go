package stockpeer_test

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

// process is a child process that runs this binary.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	end func()

	mu    sync.Mutex
	lines map[string]int
}

// start starts a process, which is killed at the end of the test.
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

// kill ends the process with SIGKILL.
func (p *process) kill() { p.end() }

// send sends a command to the process.
func (p *process) send(words ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, strings.Join(words, " ")+"\n")
	require.NoError(p.t, err)
}

// printed returns how often the process has printed a line.
func (p *process) printed(line string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[line]
}

// wait waits until the process has printed a line that often.
func (p *process) wait(line string, times int) {
	p.t.Helper()
	if p.printed(line) < times {
		require.Eventually(p.t, func() bool { return p.printed(line) >= times }, patience, 5*time.Millisecond, line)
	}
}

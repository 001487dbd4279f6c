//go:build unix

package docs_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	commandLimit = 5 * time.Minute // a build with an empty cache takes longest
	endLimit     = 30 * time.Second
)

// shell is a bash that runs one command after another, as a reader would type them.
// Directories, variables and background processes remain.
type shell struct {
	t      *testing.T
	stdin  io.Writer
	output <-chan string // lines
}

// newShell starts a bash in dir. At the end of the test, it and its background
// processes end.
func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())

	output := make(chan string, 1000)
	go func() {
		defer close(output)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			output <- lines.Text()
		}
	}()
	t.Cleanup(func() { // the context of the test has ended, which ends bash
		_ = cmd.Wait()
		overdue := time.AfterFunc(endLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer overdue.Stop()
		for range output { // until the last background process has ended
			continue
		}
		_ = reader.Close()
	})
	return &shell{t, stdin, output}
}

// run runs a command and returns what it printed, and its exit code.
func (s *shell) run(command string) (output string, code int) {
	s.t.Helper()
	const mark = "=== the command has ended:"
	// Commands do not read the standard input: it contains the next commands.
	_, err := fmt.Fprintf(s.stdin, "{ %s\n} </dev/null\nprintf '\\n%s %%d\\n' $?\n", command, mark)
	require.NoError(s.t, err)
	limit := time.After(commandLimit)
	var lines []string
	for {
		select {
		case line, ok := <-s.output:
			require.True(s.t, ok, "the shell has ended at: %s\n%s", command, strings.Join(lines, "\n"))
			rest, ended := strings.CutPrefix(line, mark)
			if !ended {
				lines = append(lines, line)
				continue
			}
			code, err := strconv.Atoi(strings.TrimSpace(rest))
			require.NoError(s.t, err)
			return strings.TrimRight(strings.Join(lines, "\n"), "\n"), code
		case <-limit:
			require.FailNow(s.t, "the command goes on", "%s\n%s", command, strings.Join(lines, "\n"))
		}
	}
}

package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// openTerminal returns the two ends of a new terminal.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, program, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = person.Close() })
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// onTerminal starts the program as a process of a new terminal, from which it reads.
func (b *bundle) onTerminal(path string, args ...string) (person *os.File, r *running) {
	b.t.Helper()
	person, program := openTerminal(b.t)
	r = &running{t: b.t, cancel: func() {}, code: make(chan int, 1), out: &buffer{}, err: &buffer{}}
	cmd := exec.Command(path, b.args(args)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, r.out, r.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended already
	go func() {
		_ = cmd.Wait() // ProcessState has the exit code
		r.code <- cmd.ProcessState.ExitCode()
	}()
	return person, r
}

// A terminal answers a question with y or yes, other text, the end of the input, or
// Ctrl-C.
func TestQuestions(t *testing.T) {
	t.Parallel()
	path := redistest.Program(t)
	commands := [][]string{
		{"cancel", "-t", "TOPIC", "--all"},
		{"dead", "redrive", "-t", "TOPIC", "--all"},
		{"dead", "rm", "-t", "TOPIC", "--all"},
		{"queue", "purge", "--queue", "TOPIC"},
		{"queue", "dead", "redrive", "--queue", "TOPIC", "--all"},
		{"queue", "dead", "rm", "--queue", "TOPIC", "--all"},
	}
	for _, args := range commands {
		t.Run("Ctrl-C at "+args[0]+" "+args[1], func(t *testing.T) {
			b := setup(t)
			person, asked := b.onTerminal(path, args...)
			asked.says("[y/N] ")
			_, err := person.WriteString("\x03")
			require.NoError(t, err)
			require.Equal(t, cli.ExitError, asked.wait())
			require.Contains(t, asked.err.String(), "[y/N] \nwakebell: nothing was done\n")
			require.Empty(t, asked.out.String())
		})
	}
	for keys, done := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "\x04": false} {
		t.Run(strconv.Quote(keys), func(t *testing.T) {
			b := setup(t)
			b.fine("schedule", "-t", "TOPIC", "--in", "1h")
			person, asked := b.onTerminal(path, "cancel", "-t", "TOPIC", "--all")
			asked.says("Cancel all 1 timers of " + b.topic + "? [y/N] ")
			_, err := person.WriteString(keys)
			require.NoError(t, err)
			if done {
				require.Equal(t, cli.ExitOK, asked.wait())
				require.Equal(t, "cancelled 1\n", asked.out.String())
				return
			}
			require.Equal(t, cli.ExitError, asked.wait())
			require.Contains(t, asked.err.String(), "nothing was done")
			require.Contains(t, b.fine("ls", "-t", "TOPIC"), "pending")
		})
	}
}

// A command reports an invalid argument before it asks for confirmation.
func TestArgumentsAreCheckedBeforeQuestion(t *testing.T) {
	b := setup(t)
	_, program := openTerminal(t) // no answer is written to it
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--rate", []string{"dead", "redrive", "-t", "TOPIC", "--all", "--rate", "50000"}},
		{"--rate", []string{"dead", "redrive", "-t", "TOPIC", "--all", "--rate", "0"}},
		{"not the Entry", []string{"dead", "redrive", "-t", "TOPIC", "x-0", "--overwrite"}},
		{"not the Entry", []string{"dead", "rm", "-t", "TOPIC", "x-0"}},
		{"topic: empty", []string{"cancel", "-t", "", "--all"}},
		{"topic: empty", []string{"dead", "rm", "-t", "", "--all"}},
		{"--window", []string{"queue", "dead", "redrive", "--queue", "TOPIC", "--all", "--window", "-1s"}},
		{"--window", []string{"queue", "dead", "redrive", "--queue", "TOPIC", "--all", "--window", "999999h"}},
		{"queue", []string{"queue", "purge", "--queue", ""}},
	} {
		code, stdout, stderr := b.callWith(program, c.args...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.says, "%v", c.args)
		require.NotContains(t, stderr, "[y/N]", "%v", c.args)
		require.Empty(t, stdout, "%v", c.args)
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/recurring"
)

// The exit codes.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitNotFound = 3
)

// childrenLimit is how long a forced exit waits for children to be killed.
const childrenLimit = 2 * time.Second

// Run runs the command of args and returns the exit code. newRoot returns the
// command of the whole program. Run shuts the command down when ctx ends or on
// SIGINT or SIGTERM; a second signal, signalGrace later or more, ends it immediately.
func Run(ctx context.Context, newRoot func(*App) *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, forced, stop := onSignals(ctx)
	defer stop()
	notes := output.NewLockedWriter(stderr)
	defer notes.End()
	a := &App{Stdin: stdin, Stdout: stdout, Stderr: notes, notes: stderr, interrupted: ctx, forced: forced}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(a.Stderr)

	type result struct {
		cmd *cobra.Command
		err error
	}
	done := make(chan result, 1)
	go func() {
		cmd, err := root.ExecuteContextC(ctx)
		done <- result{cmd, err}
	}()
	select {
	case r := <-done:
		a.progress.Load().End()
		return a.exitCode(r.cmd, r.err)
	case <-forced.Done():
		killed := make(chan struct{})
		go func() { a.children.Wait(); close(killed) }()
		select {
		case <-killed:
		case <-time.After(childrenLimit):
		}
		a.Notef("wakebell: ended by a second signal\n")
		return ExitError
	}
}

// signalGrace is for how long after the first signal others count as the same one. A
// supervisor may signal both a program and its process group, as timeout, npm and foreman
// do, and then two signals arrive within a millisecond.
const signalGrace = time.Second

// onSignals derives a context that ends with the first SIGINT or SIGTERM, and
// one that ends with the second.
func onSignals(parent context.Context) (ctx, forced context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	forced, force := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go awaitSignals(forced, signals, cancel, force)
	return ctx, forced, func() {
		if forced.Err() == nil { // else the process exits, and one more signal must not change its exit code
			signal.Stop(signals)
		}
		cancel()
		force()
	}
}

// awaitSignals calls first at the first signal, and second at the first one that arrives
// signalGrace later or more, until ctx ends.
func awaitSignals(ctx context.Context, signals <-chan os.Signal, first, second func()) {
	var began time.Time // zero before the first signal
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		switch now := time.Now(); {
		case began.IsZero():
			began = now
			first()
		case now.Sub(began) >= signalGrace:
			second()
			return
		}
	}
}

// exitCode prints err on stderr and returns the exit code that stands for it.
func (a *App) exitCode(cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	for line := range strings.SplitSeq(a.explain(cmd, err), "\n") { // errors may be joined
		// Suggestions for a mistyped command follow an empty line and are indented.
		if a.interrupted != nil && a.interrupted.Err() != nil {
			line = strings.ReplaceAll(line, context.Canceled.Error(), ErrInterrupted.Error())
		}
		indented := strings.TrimLeft(line, "\t")
		if indented == "" {
			continue
		}
		a.Notef("wakebell: %s%s\n", strings.Repeat("  ", len(line)-len(indented)), output.Escape(indented))
	}
	_, usage := errors.AsType[usageError](err)
	_, absent := errors.AsType[notFoundError](err)
	switch {
	case !a.began || usage || errors.Is(err, wakebell.ErrInvalid):
		a.Notef("See '%s --help'.\n", cmd.CommandPath())
		return ExitUsage
	case errors.Is(err, wakebell.ErrNotFound), errors.Is(err, recurring.ErrNotFound), absent:
		return ExitNotFound
	default:
		return ExitError
	}
}

// ErrInterrupted ends a command that a signal stops before it is done.
var ErrInterrupted = errors.New("interrupted")

// SoFar adds to the error of a command how much was done before it.
func SoFar(err error, done int64, what string) error {
	if done == 0 && !errors.Is(err, context.Canceled) {
		return err
	}
	return After(fmt.Sprintf("%d %s", done, what), err)
}

// RunShell runs a shell command as process.Shell does, until it exits or ctx or a.forced
// ends; Run waits for it.
func (a *App) RunShell(ctx context.Context, script string, stdin io.Reader, stdout, stderr io.Writer, env []string) error {
	if err := a.forced.Err(); err != nil {
		return err
	}
	a.children.Add(1)
	defer a.children.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.forced, func() { cancel(a.forced.Err()) })()
	return process.Shell(ctx, script, stdin, stdout, stderr, env)
}

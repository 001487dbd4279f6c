package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The exit codes.
const (
	exitOK       = 0
	exitError    = 1
	exitUsage    = 2
	exitNotFound = 3
)

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	redisURL string
	tls      tlsFlags
	remote   remoteFlags
	prefix   string
	keys     wakebelltype.Keys
	celery   bool // runs of Python's schedules are Celery messages
	output   choice
	demoPace int // factor by which the demo is slowed down; 0 means 1

	// began is set when a command's own code runs. Errors before that are usage
	// errors: an unknown command or flag, a missing argument.
	began bool

	// interrupted ends with the first signal, or with the context of run.
	interrupted context.Context

	// forced ends with the second signal. It kills the processes that children
	// counts.
	forced   context.Context
	children sync.WaitGroup
}

// childrenLimit is how long a forced exit waits for children to be killed.
const childrenLimit = 2 * time.Second

// run is the whole program except for os.Exit. It shuts the command down when
// ctx ends or on SIGINT or SIGTERM; a second signal ends it immediately.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, forced, stop := onSignals(ctx)
	defer stop()
	notes := &lockedWriter{w: stderr}
	defer notes.end()
	a := &app{stdin: stdin, stdout: stdout, stderr: notes, interrupted: ctx, forced: forced}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(a.stderr)

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
		return a.exitCode(r.cmd, r.err)
	case <-forced.Done():
		killed := make(chan struct{})
		go func() { a.children.Wait(); close(killed) }()
		select {
		case <-killed:
		case <-time.After(childrenLimit):
		}
		a.notef("wakebell: ended by a second signal\n")
		return exitError
	}
}

// onSignals derives a context that ends with the first SIGINT or SIGTERM, and
// one that ends with the second.
func onSignals(parent context.Context) (ctx, forced context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	forced, force := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		for _, end := range []func(){cancel, force} {
			select {
			case <-signals:
				end()
			case <-ended:
				return
			}
		}
	}()
	return ctx, forced, func() {
		signal.Stop(signals)
		close(ended)
		cancel()
		force()
	}
}

// exitCode prints err on stderr and returns the exit code that stands for it.
func (a *app) exitCode(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") { // errors may be joined
		// Suggestions for a mistyped command follow an empty line and are indented.
		if a.interrupted != nil && a.interrupted.Err() != nil {
			line = strings.ReplaceAll(line, context.Canceled.Error(), errInterrupted.Error())
		}
		indented := strings.TrimLeft(line, "\t")
		if indented == "" {
			continue
		}
		a.notef("wakebell: %s%s\n", strings.Repeat("  ", len(line)-len(indented)), escape(indented))
	}
	_, usage := errors.AsType[usageError](err)
	switch {
	case !a.began || usage || errors.Is(err, wakebell.ErrInvalid):
		a.notef("See '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	case errors.Is(err, wakebell.ErrNotFound), errors.Is(err, recurring.ErrNotFound), errors.Is(err, errNotHeld), errors.Is(err, errNoGate):
		return exitNotFound
	default:
		return exitError
	}
}

// usageError is an error in how the command was called.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// does wraps a command's own code as a RunE.
func (a *app) does(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return fn(cmd.Context(), args)
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "wakebell",
		Short: "Durable timers: stored in Redis, delivered by actors",
		Long: `Wakebell stores timers in Redis and delivers each at or after its due time, at
least once, also after crashes.

--redis or WAKEBELL_REDIS names Redis:
  redis://[user:password@]host:port/db
  unix://[user:password@]/path/to/redis.sock?db=0
  redis+sentinel://[user:password@]host:port,host:port/master/db
      parameters sentinel_username and sentinel_password are for Sentinel itself
  redis+cluster://[user:password@]host:port,host:port    requires --hash-tag
  rediss://, rediss+sentinel://, rediss+cluster://       the same over TLS
  embedded    a server inside this process, to try Wakebell out
Prefer the variable for a password: other users can read a command line.

All commands except demo, node, beat and bench also work without access to
Redis: --remote or WAKEBELL_REMOTE names a listening node as host:port. The
connection uses TLS, on loopback only if a TLS flag is given; tls://host:port
and plain://host:port choose explicitly. --token-file names the file with the
token to present.

Exit codes: 0 success, 1 error, 2 wrong usage, 3 not found.`,
		Example: `  wakebell demo
  wakebell node --topic invoices --exec './charge.sh'
  wakebell schedule --topic invoices --id inv-42 --in 72h --json '{"n":42}'
  wakebell get --topic invoices inv-42`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          missingCommand,
	}
	// Arguments are ids, of which there may be millions. Only flags take files.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	flags := root.PersistentFlags()
	flags.StringVar(&a.redisURL, "redis", "", "`URL` of Redis, or embedded (default $WAKEBELL_REDIS, else "+defaultRedis+")")
	a.tls.register(root)
	a.remote.register(root)
	flags.StringVar(&a.prefix, "prefix", "", "`prefix` for the name of every topic")
	flags.StringVar(&a.keys.Timeline, "timeline-key", "", "base `name` of the keys with due times (default timers_timeline)")
	flags.StringVar(&a.keys.Payloads, "payloads-key", "", "base `name` of the keys with payloads (default timers_payloads)")
	flags.BoolVar(&a.keys.HashTag, "hash-tag", false, "put topics in braces, so that a Cluster stores the keys of each in one slot")
	root.AddCommand(
		demoCommand(a), nodeCommand(a), scheduleCommand(a), lsCommand(a), getCommand(a),
		pauseCommand(a), resumeCommand(a), retuneCommand(a), statsCommand(a), doctorCommand(a), benchCommand(a),
		cancelCommand(a), rescheduleCommand(a), runNowCommand(a), topicsCommand(a), deadCommand(a), tailCommand(a),
		queueCommand(a),
		gateCommand(a),
		beatCommand(a), schedulesCommand(a), rightsCommand(a),
	)
	return root
}

// missingCommand is the RunE of a command that only has subcommands.
func missingCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return usagef("a command is required")
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

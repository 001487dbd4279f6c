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
	keys     wakebell.Keys
	celery   bool // runs of Python's schedules are Celery messages
	output   choice
	demoPace int // how often as long as it says a demo takes; 0: once

	// began: a command's own code runs. What fails before it is a matter of
	// usage: an unknown command or flag, a missing argument.
	began bool

	// interrupted ends with the first signal, and with the context of run.
	interrupted context.Context

	// forced ends with the second signal; children are what is to be killed
	// then, which they do by themselves.
	forced   context.Context
	children sync.WaitGroup
}

// childrenLimit is how long a forced end waits for children to be killed.
const childrenLimit = 2 * time.Second

// run is the whole program but for os.Exit. It ends when ctx does, or with
// SIGINT or SIGTERM, in the orderly way of the command; a second signal ends
// it at once.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, forced, stop := onSignals(ctx)
	defer stop()
	a := &app{stdin: stdin, stdout: stdout, stderr: &lockedWriter{w: stderr}, interrupted: ctx, forced: forced}
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

// exitCode says what is wrong.
func (a *app) exitCode(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") { // errors may be joined
		// Suggestions for a mistyped command are set off and indented.
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
	case errors.Is(err, wakebell.ErrNotFound), errors.Is(err, wakebell.ErrNoSchedule), errors.Is(err, errNotHeld), errors.Is(err, errNoGate):
		return exitNotFound
	default:
		return exitError
	}
}

// usageError is about how the command was called.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// does makes a RunE of a command's own code.
func (a *app) does(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return fn(cmd.Context(), args)
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "wakebell",
		Short: "Durable timers: Redis keeps them, actors deliver them",
		Long: `Wakebell keeps timers in Redis and delivers each at or after its instant, at
least once, whatever crashes.

Redis is given by --redis or WAKEBELL_REDIS:
  redis://[user:password@]host:port/db
  unix://[user:password@]/path/to/redis.sock?db=0
  redis+sentinel://[user:password@]host:port,host:port/master/db
      sentinel_username and sentinel_password after a ? are for Sentinel itself
  redis+cluster://[user:password@]host:port,host:port    give --hash-tag as well
  rediss://, rediss+sentinel://, rediss+cluster://       the same over TLS
  embedded    one inside this process, for a try
A password is safer in the variable: a command line can be read by others.

All commands but demo, node, beat and bench also work where Redis cannot be
reached: --remote or WAKEBELL_REMOTE names a node that listens, as host:port. It
is spoken to over TLS, but on loopback only if a flag of TLS is given;
tls://host:port and plain://host:port say it outright. --token-file has the
token to show it.

Exit codes: 0 fine, 1 error, 2 wrong usage, 3 not found.`,
		Example: `  wakebell demo
  wakebell node --topic invoices --exec './charge.sh'
  wakebell schedule --topic invoices --id inv-42 --in 72h --json '{"n":42}'
  wakebell get --topic invoices inv-42`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          missingCommand,
	}
	// Arguments are ids, of which there may be millions; files are for flags.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	flags := root.PersistentFlags()
	flags.StringVar(&a.redisURL, "redis", "", "`URL` of Redis, or embedded (default $WAKEBELL_REDIS, else "+defaultRedis+")")
	a.tls.register(root)
	a.remote.register(root)
	flags.StringVar(&a.prefix, "prefix", "", "put before the name of every topic")
	flags.StringVar(&a.keys.Timeline, "timeline-key", "", "base `name` of the keys with instants (default timers_timeline)")
	flags.StringVar(&a.keys.Payloads, "payloads-key", "", "base `name` of the keys with payloads (default timers_payloads)")
	flags.BoolVar(&a.keys.HashTag, "hash-tag", false, "put topics in braces, so that a Cluster keeps the keys of each in one slot")
	root.AddCommand(
		a.demoCommand(), a.nodeCommand(), a.scheduleCommand(), a.lsCommand(), a.getCommand(),
		a.pauseCommand(), a.resumeCommand(), a.retuneCommand(), a.statsCommand(), a.doctorCommand(), a.benchCommand(),
		a.cancelCommand(), a.rescheduleCommand(), a.runNowCommand(), a.topicsCommand(), a.deadCommand(), a.tailCommand(),
		a.queueCommand(),
		a.gateCommand(),
		a.beatCommand(), a.schedulesCommand(), a.rightsCommand(),
	)
	return root
}

// missingCommand is what a command does that only has subcommands.
func missingCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return usagef("which command?")
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

package gates

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/wakebelltype"
)

type holdFlags struct {
	hold    time.Duration
	times   int
	lease   time.Duration
	signal  time.Duration
	timeout time.Duration
	exec    string
	keys    wakebelltype.GateKeys
}

func holdCommand(a *cli.App) *cobra.Command {
	f := &holdFlags{}
	cmd := &cobra.Command{
		Use:   "hold NAME",
		Short: "Wait for a gate and hold it",
		Long: `Waits for the turn at a gate, holds it for --for, or while a command runs, or
until SIGINT or SIGTERM, and releases it. With --times it repeats this. Events
are lines of JSON on stdout:
  event      acquired, released or lost
  gate, fence
  waited_ms  how long it waited for the turn
  at
With --exec, sh -c COMMAND runs in the turn, with the fencing token in
WAKEBELL_FENCE and the gate in WAKEBELL_GATE; its stdout goes to stderr. If the
turn is lost, its process group is killed. The exit code is 1 if the turn was
lost or not granted within --timeout, or if the command failed.`,
		Example: `  wakebell gate hold deploy --exec './deploy.sh'
  wakebell gate hold deploy --for 10s --timeout 1m
  wakebell gate hold deploy --for 0s --times 1000 | tail -1`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	cli.DurationVar(flags, &f.hold, "for", -1, "how long to hold the turn (default until a signal)")
	flags.IntVar(&f.times, "times", 1, "`number` of turns to take")
	cli.DurationVar(flags, &f.lease, "lease", 10*time.Second, "time after which a crashed holder loses the turn, 300ms to 24h")
	cli.DurationVar(flags, &f.signal, "signal-ttl", 500*time.Millisecond, "time that a process has to confirm its turn, 50ms to 1m")
	cli.DurationVar(flags, &f.timeout, "timeout", 0, "how long to wait for a turn; 0: no limit")
	flags.StringVar(&f.exec, "exec", "", "shell `command` to run in the turn")
	flags.Lookup("for").DefValue = ""
	cli.JSONFlag(cmd)
	keysFlag(cmd, &f.keys)
	cmd.MarkFlagsMutuallyExclusive("for", "exec")
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		switch {
		case flags.Changed("for") && f.hold < 0:
			return cli.Usagef("--for: %v is negative", f.hold)
		case f.times < 1:
			return cli.Usagef("--times: %d is not above 0", f.times)
		case f.timeout < 0:
			return cli.Usagef("--timeout: %v is negative", f.timeout)
		case f.lease == 0 || f.signal == 0: // which would be the default
			return cli.Usagef("--lease, --signal-ttl: 0, want above 0")
		}
		defer process.KeepBrokenPipes()()
		s := settings{
			keys: f.keys, lease: f.lease, switches: opened.GateSwitches{SignalTTL: f.signal}, log: cli.NewLogger(a.Stderr, "text", "warn"),
		}
		return withGates(ctx, a, cmd, s, func(g client) error { return holdGate(ctx, a, g, args[0], f) })
	})
	return cmd
}

func holdGate(ctx context.Context, a *cli.App, of gate.Locker, name string, f *holdFlags) error {
	for range f.times {
		turn, err := takeTurn(ctx, of, name, f.timeout)
		if err == nil {
			err = holdTurn(ctx, a, turn, f)
		}
		switch {
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			return nil // a signal while it waited
		case err != nil:
			return err
		case ctx.Err() != nil:
			return nil
		}
	}
	return nil
}

// releaseLimit bounds the release of a turn.
const releaseLimit = 5 * time.Second

var errNotInTime = errors.New("timed out waiting for the turn")

func takeTurn(ctx context.Context, of gate.Locker, name string, timeout time.Duration) (gate.Turn, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w (%v)", errNotInTime, timeout))
		defer cancel()
	}
	return of.Acquire(ctx, name)
}

// eventLine is the JSON line of gate hold.
type eventLine struct {
	Event    string  `json:"event"`
	Gate     string  `json:"gate"`
	Fence    uint64  `json:"fence"`
	WaitedMS float64 `json:"waited_ms"`
	At       string  `json:"at"`
}

func printEvent(a *cli.App, event string, turn gate.Turn) error {
	return a.PrintJSON(eventLine{event, turn.Gate(), turn.Fence(), output.Millis(turn.Waited()), output.Stamp(time.Now())})
}

// holdTurn holds a turn for as long as the flags say, and releases it also after a
// failure.
func holdTurn(ctx context.Context, a *cli.App, turn gate.Turn, f *holdFlags) error {
	held := printEvent(a, "acquired", turn)
	if held == nil {
		held = waitInTurn(ctx, a, turn, f)
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	err := turn.Release(after)
	switch {
	case err == nil:
		return errors.Join(held, printEvent(a, "released", turn))
	case errors.Is(err, gate.ErrTurnLost):
		return errors.Join(held, err, printEvent(a, "lost", turn))
	default:
		return errors.Join(held, err)
	}
}

// waitInTurn waits for the end of the turn, or runs the command. An early end is not an
// error here: the release returns it.
func waitInTurn(ctx context.Context, a *cli.App, turn gate.Turn, f *holdFlags) error {
	if f.exec != "" {
		return execInTurn(ctx, a, turn, f.exec)
	}
	var over <-chan time.Time
	if f.hold >= 0 {
		timer := time.NewTimer(f.hold)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-ctx.Done():
	case <-turn.Context().Done():
	}
	return nil
}

// execInTurn runs a command until it ends, the turn is lost or a signal comes.
func execInTurn(ctx context.Context, a *cli.App, turn gate.Turn, script string) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(turn.Context(), func() { cancel(context.Cause(turn.Context())) })()
	return a.RunShell(inner, script, nil, a.Stderr, a.Stderr,
		[]string{"WAKEBELL_FENCE=" + strconv.FormatUint(turn.Fence(), 10), "WAKEBELL_GATE=" + turn.Gate()})
}

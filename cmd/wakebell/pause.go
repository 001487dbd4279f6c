package main

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) pauseCommand() *cobra.Command {
	var topic, by, reason string
	cmd := &cobra.Command{
		Use:   "pause --topic TOPIC",
		Short: "Have all nodes take no timers of a topic",
		Long: `Orders all nodes to take no timers of a topic until resume, and prints what is
ordered of it then. What runs goes on, and what is scheduled waits. The order
is kept in Redis, with who gave it and why.

With -o json it is one line with topic, paused, paused_at, paused_by,
paused_reason and settings.`,
		Example: `  wakebell pause --topic invoices --reason 'the bank is down'`,
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks; a `text` of up to 1,024 bytes")
	cmd.Flags().StringVar(&by, "by", "", "`who` pauses (default this user at this host)")
	a.orders(cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebell.Control, error) {
		if by == "" {
			by = whoami()
		}
		return c.Pause(ctx, topic, by, reason)
	})
	return cmd
}

// whoami names who runs the program, as far as it can be told.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

func (a *app) resumeCommand() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "resume --topic TOPIC",
		Short: "End a pause of a topic",
		Long: `Ends a pause of a topic on all nodes, and prints what is ordered of it then, as
pause does. Settings of retune stay.`,
		Example: `  wakebell resume --topic invoices`,
		Args:    cobra.NoArgs,
	}
	a.orders(cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebell.Control, error) {
		return c.Resume(ctx, topic)
	})
	return cmd
}

// tuneFlag is a flag of retune and what it sets.
type tuneFlag struct {
	name, usage string
	number      *int           // or
	duration    *time.Duration // one of the two
	off         bool           // 0 turns it off
}

func tuneFlags(s *wakebell.Settings) []tuneFlag {
	return []tuneFlag{
		{"max-concurrent", "timers each node handles at once, 1 to 10,000", &s.MaxConcurrent, nil, false},
		{"lease-ttl", "how long a crashed node keeps its timers from others", nil, &s.LeaseTTL, false},
		{"max-lease-age", "end handlers that run longer; 0: never", nil, &s.MaxLeaseAge, true},
		{"polling-interval", "first delay of the backoff when idle", nil, &s.PollingInterval, false},
		{"max-polling-interval", "cap of that backoff", nil, &s.MaxPollingInterval, false},
		{"retry-initial", "delay after the first failure; it doubles with each", nil, &s.RetryInitial, false},
		{"retry-max", "cap of that delay", nil, &s.RetryLimit, false},
		{"max-attempts", "failure at which a timer becomes a dead letter", &s.MaxAttempts, nil, false},
	}
}

func (t tuneFlag) jsonName() string { return strings.ReplaceAll(t.name, "-", "_") }

func (t tuneFlag) zero() bool {
	return t.number != nil && *t.number == 0 || t.duration != nil && *t.duration == 0
}

func (a *app) retuneCommand() *cobra.Command {
	var topic string
	var clearAll bool
	var set wakebell.Settings
	tuned := tuneFlags(&set)
	cmd := &cobra.Command{
		Use:   "retune --topic TOPIC (SETTINGS | --clear)",
		Short: "Change settings of a topic on all nodes",
		Long: `Puts settings in force on all nodes of a topic, in place of all that retune put
in force before, and prints what is ordered of the topic then, as pause does.
What is not given is left to each node's own flags; with --clear, all is.
Handlers that run are not touched, and a pause stays.

Without any of them it changes nothing and prints what is ordered.`,
		Example: `  wakebell retune --topic invoices --max-concurrent 2 --max-attempts 50
  wakebell retune -t invoices --clear`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.BoolVar(&clearAll, "clear", false, "leave all settings to the nodes")
	for _, t := range tuned {
		if t.number != nil {
			flags.IntVar(t.number, t.name, 0, t.usage)
		} else {
			flags.DurationVar(t.duration, t.name, 0, t.usage)
		}
		cmd.MarkFlagsMutuallyExclusive("clear", t.name)
	}
	a.orders(cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebell.Control, error) {
		for _, t := range tuned {
			switch {
			case !flags.Changed(t.name) || !t.zero():
			case t.off:
				*t.duration = -1
			default:
				return wakebell.Control{}, usagef("--%s: 0; what is not given is left to the nodes", t.name)
			}
		}
		if !clearAll && set == (wakebell.Settings{}) {
			return c.Control(ctx, topic)
		}
		return c.Retune(ctx, topic, set)
	})
	return cmd
}

// orders gives a command its topic, and has it print what order returns.
func (a *app) orders(cmd *cobra.Command, topic *string, order func(context.Context, wakebell.Operator) (wakebell.Control, error)) {
	a.topicFlag(cmd, topic, "`topic` to order")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return a.ask(ctx, func(c asked) error {
			control, err := order(ctx, c)
			if err != nil {
				return err
			}
			return a.printControl(*topic, control)
		})
	})
}

// pauseLine is who paused a topic and why, as it is printed.
type pauseLine struct {
	Paused   bool   `json:"paused"`
	PausedAt string `json:"paused_at"`
	PausedBy string `json:"paused_by"`
	Reason   string `json:"paused_reason"`
}

func newPauseLine(c wakebell.Control) pauseLine {
	return pauseLine{c.Paused, stamp(c.PausedAt), c.PausedBy, c.Reason}
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func (a *app) printControl(topic string, c wakebell.Control) error {
	pause := newPauseLine(c)
	settings := map[string]any{}
	rows := [][2]string{
		{"topic", a.prefix + topic},
		{"paused", yesNo(pause.Paused)},
		{"paused at", pause.PausedAt},
		{"paused by", pause.PausedBy},
		{"reason", pause.Reason},
	}
	for _, t := range tuneFlags(&c.Settings) {
		switch {
		case t.zero():
		case t.number != nil:
			settings[t.jsonName()] = *t.number
			rows = append(rows, [2]string{t.name, strconv.Itoa(*t.number)})
		default:
			text := max(*t.duration, 0).String()
			settings[t.jsonName()] = text
			rows = append(rows, [2]string{t.name, text})
		}
	}
	if !a.wantsJSON() {
		return a.printRows(rows)
	}
	return a.printJSON(struct {
		Topic string `json:"topic"`
		pauseLine
		Settings map[string]any `json:"settings"`
	}{a.prefix + topic, pause, settings})
}

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

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

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// tuneFlag is a flag of retune and the setting behind it.
type tuneFlag struct {
	name, usage string
	number      *int           // or
	duration    *time.Duration // one of the two
	off         bool           // 0 turns it off
}

func tuneFlags(s *wakebelltype.Settings) []tuneFlag {
	return []tuneFlag{
		{"max-concurrent", "timers each node handles at once, 1 to 10,000", &s.MaxConcurrent, nil, false},
		{"lease-ttl", "time until the timers of a crashed node are redelivered", nil, &s.LeaseTTL, false},
		{"max-lease-age", "cancel handlers that run longer; 0: never", nil, &s.MaxLeaseAge, true},
		{"polling-interval", "initial poll delay when idle", nil, &s.PollingInterval, false},
		{"max-polling-interval", "maximum poll delay when idle", nil, &s.MaxPollingInterval, false},
		{"retry-initial", "delay after the first failure; doubles with each", nil, &s.RetryInitial, false},
		{"retry-max", "maximum retry delay", nil, &s.RetryLimit, false},
		{"max-attempts", "failures after which a timer becomes a dead letter", &s.MaxAttempts, nil, false},
	}
}

func (t tuneFlag) jsonName() string { return strings.ReplaceAll(t.name, "-", "_") }

func (t tuneFlag) zero() bool {
	return t.number != nil && *t.number == 0 || t.duration != nil && *t.duration == 0
}

func (a *app) retuneCommand() *cobra.Command {
	var topic string
	var clearAll bool
	var set wakebelltype.Settings
	tuned := tuneFlags(&set)
	cmd := &cobra.Command{
		Use:   "retune --topic TOPIC (SETTINGS | --clear)",
		Short: "Change settings of a topic on all nodes",
		Long: `Overrides settings of a topic on all nodes, and prints the topic's cluster-wide
settings, as pause does. It replaces all earlier overrides. For settings that are
not given, each node uses its own flags; --clear removes all overrides. A pause
stays.

A change applies to running handlers too: --lease-ttl from the next extension,
--max-lease-age at once, the retry settings when the handler returns. A lower
--max-concurrent ends none.

Without flags it changes nothing and prints the cluster-wide settings.`,
		Example: `  wakebell retune --topic invoices --max-concurrent 2 --max-attempts 50
  wakebell retune -t invoices --clear`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.BoolVar(&clearAll, "clear", false, "remove all overrides")
	for _, t := range tuned {
		if t.number != nil {
			flags.IntVar(t.number, t.name, 0, t.usage)
		} else {
			flags.DurationVar(t.duration, t.name, 0, t.usage)
		}
		cmd.MarkFlagsMutuallyExclusive("clear", t.name)
	}
	a.controls(cmd, &topic, func(ctx context.Context, c wakebell.Operator) (wakebelltype.Control, error) {
		for _, t := range tuned {
			switch {
			case !flags.Changed(t.name) || !t.zero():
			case t.off:
				*t.duration = -1
			default:
				return wakebelltype.Control{}, usagef("--%s: 0, want above 0; omit the flag to use each node's own setting", t.name)
			}
		}
		if !clearAll && set == (wakebelltype.Settings{}) {
			return c.Control(ctx, topic)
		}
		return c.Retune(ctx, topic, set)
	})
	return cmd
}

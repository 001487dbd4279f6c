package timers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// deadFlags select dead letters of a topic.
type deadFlags struct {
	topic                string
	reason               string
	olderThan, newerThan time.Duration

	given func(flag string) bool
}

func (f *deadFlags) register(a *cli.App, cmd *cobra.Command) {
	a.TopicFlag(cmd, &f.topic, "`topic` of the dead letters")
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "only those whose reason contains this `text`")
	cli.DurationVar(flags, &f.olderThan, "older-than", 0, "only those that died at least this `duration` ago")
	cli.DurationVar(flags, &f.newerThan, "newer-than", 0, "only those that died at most this `duration` ago")
	f.given = flags.Changed
}

func (f *deadFlags) filtered() bool {
	return f.given("reason") || f.given("older-than") || f.given("newer-than")
}

// filter rejects flags that are given but empty: an empty shell variable must not
// select all dead letters.
func (f *deadFlags) filter() (wakebelltype.DeadFilter, error) {
	switch {
	case f.given("reason") && f.reason == "":
		return wakebelltype.DeadFilter{}, cli.Usagef("--reason: empty")
	case f.given("older-than") && f.olderThan <= 0:
		return wakebelltype.DeadFilter{}, cli.Usagef("--older-than: %v, want above 0", f.olderThan)
	case f.given("newer-than") && f.newerThan <= 0:
		return wakebelltype.DeadFilter{}, cli.Usagef("--newer-than: %v, want above 0", f.newerThan)
	}
	return wakebelltype.DeadFilter{Reason: f.reason, OlderThan: f.olderThan, NewerThan: f.newerThan}, nil
}

// deadChoice selects the dead letters that a command changes: one entry, those of
// a filter, or all.
type deadChoice struct {
	deadFlags
	all, yes bool
}

func (f *deadChoice) register(a *cli.App, cmd *cobra.Command) {
	f.deadFlags.register(a, cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the topic")
	cli.YesFlag(cmd, &f.yes, "do not ask for confirmation")
}

func (f *deadChoice) choose(args []string) (wakebelltype.DeadFilter, error) {
	ways := len(args)
	for _, way := range []bool{f.filtered(), f.all} {
		if way {
			ways++
		}
	}
	switch {
	case ways != 1:
		return wakebelltype.DeadFilter{}, cli.Usagef("give one of an entry, a filter and --all")
	case len(args) == 0:
		return f.filter()
	case args[0] == "":
		return wakebelltype.DeadFilter{}, cli.Usagef("ENTRY: empty")
	default:
		return wakebelltype.DeadFilter{Entry: args[0]}, nil
	}
}

// deadTotal returns the number of dead letters that match a filter, for a progress; 0 if
// it is unknown.
func deadTotal(ctx context.Context, c wakebell.Operator, topic string, filter wakebelltype.DeadFilter) int64 {
	if filter != (wakebelltype.DeadFilter{}) {
		return 0
	}
	stats, err := c.Stats(ctx, topic)
	if err != nil {
		return 0 // the command itself reports it
	}
	return stats.Dead
}

// countLimit bounds the count of dead letters for a confirmation.
const countLimit = 1000

// countDead returns the number of dead letters that match a filter, as text.
func countDead(ctx context.Context, c wakebell.Operator, topic string, filter wakebelltype.DeadFilter) (string, error) {
	if filter == (wakebelltype.DeadFilter{}) {
		stats, err := c.Stats(ctx, topic)
		return output.Number(stats.Dead), err
	}
	n := 0
	for _, err := range c.DeadLetters(ctx, topic, filter, wakebelltype.Page{}) {
		if err != nil {
			return "", err
		}
		if n++; n > countLimit {
			return fmt.Sprintf("more than %d", countLimit), nil
		}
	}
	return strconv.Itoa(n), nil
}

package topics

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsReshardCommand(a *cli.App) *cobra.Command {
	var shards int
	cmd := &cobra.Command{
		Use:   "reshard TOPIC --shards N",
		Short: "Change the number of shards of a topic with timers",
		Long: `Gives a topic N shards, 1 to 256, while nodes handle it and clients use it, and moves
its timers and dead letters. On a terminal it shows how many are moved, and the time
left.

It begins with 10 s in which all clients learn of the change. A timer that a handler has
is not moved before it is settled, and neither are those with the same key. So it does
not end while a handler runs, or while a key always has a timer that runs; it may be
interrupted then. The topic stays usable, and the same command continues, on any machine.
A topic of which a move to another Redis has begun is refused: finish the move with
topics move, or end it with topics move --abort.

With -o json a line every second: topic, shards, next, before, moving, since (as shards),
moved (timers and dead letters, by this command), left (timers where they were before),
eta_s (seconds left at the present rate, null if unknown) and done.`,
		Example: `  wakebell topics reshard invoices --shards 16`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().IntVar(&shards, "shards", 0, "`number` of shards, 1 to 256")
	_ = cmd.MarkFlagRequired("shards") // the flag exists
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return reshard(ctx, a, c, args[0], shards) })
	})
	return cmd
}

type reshardLine struct {
	shardsLine
	Moved int64    `json:"moved"`
	Left  int64    `json:"left"`
	ETAS  *float64 `json:"eta_s"`
	Done  bool     `json:"done"`
}

// linesEvery is the time between two lines of JSON.
const linesEvery = time.Second

func reshard(ctx context.Context, a *cli.App, c cli.Client, topic string, shards int) error {
	began := time.Now()
	var progress *output.Progress
	var moving, printed time.Time // when the first timer was moved
	for r, err := range c.Reshard(ctx, topic, shards) {
		if err != nil {
			return err
		}
		if moving.IsZero() && r.Moved > 0 {
			moving, progress = time.Now(), a.Progress("reshard", r.Moved+r.Left)
		}
		progress.Set(r.Moved)
		if a.WantsJSON() && (r.Done || time.Since(printed) >= linesEvery) {
			printed = time.Now()
			if err := a.PrintJSON(reshardLine{newShardsLine(a, topic, r.Layout), r.Moved, r.Left, timeLeft(r, moving), r.Done}); err != nil {
				return err
			}
		}
		if !r.Done {
			continue
		}
		a.Summaryf("moved %d in %v", r.Moved, output.Took(began))
		if !a.WantsJSON() {
			return printShards(a, topic, r.Layout)
		}
	}
	return nil
}

// timeLeft returns how many seconds a resharding takes at the present rate; nil: unknown.
func timeLeft(r wakebelltype.Resharding, moving time.Time) *float64 {
	if moving.IsZero() || r.Moved == 0 {
		return nil
	}
	return new(output.Rounded(time.Since(moving).Seconds() / float64(r.Moved) * float64(r.Left)))
}

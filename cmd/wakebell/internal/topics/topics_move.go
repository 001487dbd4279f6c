package topics

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsMoveCommand(a *cli.App) *cobra.Command {
	var to string
	var abort bool
	var o wakebelltype.MoveOptions
	cmd := &cobra.Command{
		Use:   "move TOPIC --to URL",
		Short: "Move a topic to another Redis",
		Long: `Moves a topic from the Redis of --redis to that of --to, while nodes of both handle it:
timers with their attempts, dead letters, marks of Once, counts and the history. Start
nodes for the target first, then switch the clients to it, then run this command, and
stop the nodes of the source last. A call about an id finds only what is where it looks.

A target without timers gets the number of shards of the topic, and one without a pause
and overrides gets those. A timer that a handler has is moved when it is settled, and
with it those with the same key. One that is due within 10 s is left to the nodes of the
source; with --all it is moved too. It ends when the source has neither timers nor dead
letters. On a terminal it shows how many are moved, and the time left.

A topic of joins, or of recurring schedules with Overlap that are not paused, is not
moved without --force: a part that is moved counts as cancelled, and a last run as gone.

It may be interrupted; the same command continues, on any machine. If it was killed, up
to 200 timers of each shard are on their way, and no node delivers them until the same
command runs again. If the target is lost, --abort puts them back into the source. The
clocks of both Redis must not differ by more than 500 ms. It needs both Redis, not a
node. The flags for TLS apply to both.

With -o json a line every second: topic, moved (timers, dead letters and entries of the
history, by this command), left (timers in the source), eta_s (seconds left at the
present rate, null if unknown), done and put_back (by --abort).`,
		Example: `  wakebell topics move invoices --to redis://other:6379
  wakebell topics move invoices --to redis+cluster://a:7000,b:7000 --all`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "`URL` of the target, as for --redis")
	flags.BoolVar(&o.All, "all", false, "also move timers that are due or due within 10 s")
	flags.BoolVar(&o.Force, "force", false, "also move a topic of joins, or of recurring schedules with Overlap")
	flags.StringVar(&a.Keys.Beat, "key-prefix", "redbeat:", "prefix of the `keys` of recurring schedules")
	flags.BoolVar(&abort, "abort", false, "put back what was on its way to a target that is lost, and forget the move")
	cmd.MarkFlagsMutuallyExclusive("to", "abort")
	cmd.MarkFlagsOneRequired("to", "abort")
	cmd.MarkFlagsMutuallyExclusive("all", "abort")
	cmd.MarkFlagsMutuallyExclusive("force", "abort")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.WithClient(func(c *wakebell.Client) error {
			if abort {
				return abortMove(ctx, a, c, args[0])
			}
			return a.WithTarget(to, func(target *wakebell.Client) error { return move(ctx, a, c, args[0], target, o) })
		})
	})
	return cmd
}

type moveLine struct {
	Topic string   `json:"topic"`
	Moved int64    `json:"moved"`
	Left  int64    `json:"left"`
	ETAS  *float64 `json:"eta_s"`
	Done  bool     `json:"done"`

	PutBack int64 `json:"put_back"`
}

func move(ctx context.Context, a *cli.App, c *wakebell.Client, topic string, target *wakebell.Client, o wakebelltype.MoveOptions) error {
	began := time.Now()
	var progress *output.Progress
	var printed time.Time
	for m, err := range c.MoveTopic(ctx, topic, target, o) {
		if err != nil {
			progress.End()
			if m.Moved > 0 || errors.Is(err, context.Canceled) {
				a.Notef("wakebell: moved %d, %d timers are left; the same command continues\n", m.Moved, m.Left)
			}
			return err
		}
		if progress == nil {
			progress = a.Progress("move", m.Moved+m.Left)
		}
		progress.Set(m.Moved)
		line := moveLine{Topic: a.Prefix + topic, Moved: m.Moved, Left: m.Left, ETAS: secondsLeft(m, began), Done: m.Done}
		if a.WantsJSON() && (m.Done || time.Since(printed) >= linesEvery) {
			printed = time.Now()
			if err := a.PrintJSON(line); err != nil {
				return err
			}
		}
		if m.Done && !a.WantsJSON() {
			a.Summaryf("took %v", output.Took(began))
			return printMoved(a, line.Topic, "moved", m.Moved)
		}
	}
	return nil
}

// secondsLeft returns how many seconds a move takes at the present rate; nil: unknown.
func secondsLeft(m wakebelltype.Moving, began time.Time) *float64 {
	if m.Moved == 0 {
		return nil
	}
	return new(output.Rounded(time.Since(began).Seconds() / float64(m.Moved) * float64(m.Left)))
}

func abortMove(ctx context.Context, a *cli.App, c *wakebell.Client, topic string) error {
	back, err := c.AbortMove(ctx, topic)
	if err != nil {
		return err
	}
	if a.WantsJSON() {
		return a.PrintJSON(moveLine{Topic: a.Prefix + topic, PutBack: back, Done: true})
	}
	return printMoved(a, a.Prefix+topic, "put back", back)
}

func printMoved(a *cli.App, topic, what string, n int64) error {
	return a.PrintRows([][2]string{{"topic", topic}, {what, strconv.FormatInt(n, 10)}})
}

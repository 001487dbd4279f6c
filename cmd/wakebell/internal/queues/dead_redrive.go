package queues

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxWindow is the longest window of queue.DeduplicationWindow.
const maxWindow = 100 * 365 * 24 * time.Hour

type redriveFlags struct {
	deadChoice
	key    string
	window time.Duration
}

func deadRedriveCommand(a *cli.App) *cobra.Command {
	f := &redriveFlags{}
	cmd := &cobra.Command{
		Use:   "redrive --queue QUEUE (ENTRY | --all)",
		Short: "Turn dead letters back into messages",
		Long: `Publishes dead letters again with new ids and deletes them, each atomically, and
prints how many. With --dedup-key the message of ENTRY gets that key for
--window. If another message has the key, the dead letter is kept. The exit code
is 3 if ENTRY is absent. --all asks for confirmation on a terminal and requires
--yes elsewhere.

With -o json it prints one line with queue and redriven, a number.`,
		Example: `  wakebell queue dead redrive --queue mail --all --yes`,
		Args:    cobra.MaximumNArgs(1),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.key, "dedup-key", "", "deduplication `key` of the new message")
	cli.DurationVar(cmd.Flags(), &f.window, "window", time.Hour, "how long the key suppresses duplicates")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		if err := f.choose(args); err != nil {
			return err
		}
		if f.all && f.key != "" {
			return cli.Usagef("--dedup-key: requires ENTRY, not --all")
		}
		if f.window < time.Millisecond || f.window > maxWindow {
			return cli.Usagef("--window: %v, want 1ms to 100 years", f.window)
		}
		return ask(ctx, a, func(c client) error { return redriveDead(ctx, a, c, f) })
	})
	return cmd
}

func redriveDead(ctx context.Context, a *cli.App, c client, f *redriveFlags) error {
	var n int64
	q := queue.New[[]byte](f.queue.Name, append(cli.QueueOptions(f.queue), queue.DeduplicationWindow(f.window))...)
	how := q.RedriveOptions()
	if f.entry == "" {
		if err := confirmDead(ctx, a, c, &f.deadChoice, "Redrive"); err != nil {
			return err
		}
		var err error
		stop := followStats(ctx, a, c, "redrive", f.queue, func(st wakebelltype.QueueStats) int64 { return st.Dead })
		n, err = queue.Redrive(ctx, c, f.queue, how)
		stop()
		if err != nil {
			return cli.SoFar(err, n, "dead letters were redriven; run the same command again for the rest")
		}
	} else {
		l, err := c.DeadLetter(ctx, f.queue, f.entry)
		if err != nil {
			return err
		}
		how.Key = func(wakebelltype.QueueDeadLetter) string { return f.key }
		outcome, _, err := c.RedriveDeadLetter(ctx, f.queue, l, how)
		switch {
		case err != nil:
			return err
		case outcome == wakebelltype.QueueRedriveAbsent:
			return fmt.Errorf("%w: dead letter %q", wakebell.ErrNotFound, f.entry)
		case outcome == wakebelltype.QueueRedriveDuplicate:
			a.Notef("wakebell: another message has the deduplication key; the dead letter was kept\n")
		default:
			n = 1
		}
	}
	if a.WantsJSON() {
		return a.PrintJSON(struct {
			Queue    string `json:"queue"`
			Redriven int64  `json:"redriven"`
		}{a.Prefix + f.queue.Name, n})
	}
	return a.Printf("redriven %d\n", n)
}

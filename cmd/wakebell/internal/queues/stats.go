package queues

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

type statsLine struct {
	Queue      string `json:"queue"`
	Pending    int64  `json:"pending"`
	Processing int64  `json:"processing"`
	Ended      int64  `json:"ended"`
	Unleased   int64  `json:"unleased"`
	Completed  int64  `json:"completed"`
	Failed     int64  `json:"failed"`
	Dead       int64  `json:"dead"`
	Oldest     string `json:"oldest"`

	Throughput *cli.ThroughputLine `json:"throughput,omitempty"`
}

func statsCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "stats --queue QUEUE",
		Short: "Show the counts of a queue",
		Long: `Shows the counts of a queue. With -o json it is one line with queue; pending,
messages that wait; processing, messages that a consumer holds or that wait for
their next attempt, of which ended have an expired lease and unleased are
delivered at most once; completed and failed, messages whose payloads are kept;
dead, the dead letters; and oldest, when the next message was published, if its
id tells.

With --since, 1 min to 90 days, it shows how many messages were published, handled,
failed and dead-lettered since then, and draws the handled ones as a sparkline: by
minute for up to 24 hours, otherwise by day. -o json then has throughput: step_s, from
(an instant), and the lists published, handled, failed, dead, lateness_p50_s and
lateness_p99_s with a number for each step. Messages that Python publishes are not counted as published. Nodes write
their counts every 5 s.`,
		Example: `  wakebell queue stats --queue mail
  wakebell queue stats --queue mail --since 6h
  wakebell queue stats --queue mail -o json | jq .pending`,
		Args: cli.NoArgs,
	}
	nameFlag(cmd, &q)
	cli.ThroughputFlag(cmd.Flags(), &since)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if err := cli.CheckThroughput(since); err != nil {
			return err
		}
		return ask(ctx, a, func(c client) error {
			st, err := c.Stats(ctx, q)
			var line *cli.ThroughputLine
			if err == nil && since > 0 {
				var t wakebelltype.Throughput
				t, err = c.Throughput(ctx, q, since)
				line = cli.NewQueueThroughputLine(t)
			}
			if err == nil {
				err = requireQueue(ctx, a, c, q)
			}
			if err != nil {
				return err
			}
			return printStats(a, q, st, line)
		})
	})
	return cmd
}

// printStats prints counts and, unless it is nil, the throughput.
func printStats(a *cli.App, q wakebelltype.QueueKeys, st wakebelltype.QueueStats, throughput *cli.ThroughputLine) error {
	line := statsLine{
		a.Prefix + q.Name, st.Pending, st.Processing, st.Ended, st.Unleased, st.Completed, st.Failed, st.Dead, output.Stamp(st.Oldest), throughput,
	}
	if a.WantsJSON() {
		return a.PrintJSON(line)
	}
	n := a.Screen().Count
	rows := [][2]string{
		{"queue", line.Queue},
		{"pending", n(st.Pending)},
		{"processing", n(st.Processing)},
		{"ended", n(st.Ended)},
		{"unleased", n(st.Unleased)},
		{"completed", n(st.Completed)},
		{"failed", n(st.Failed)},
		{"dead", n(st.Dead)},
		{"oldest", a.Screen().Time(st.Oldest)},
	}
	if throughput != nil {
		rows = append(rows, throughput.Rows(a.Screen())...)
	}
	return a.PrintRows(rows)
}

package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

type queueStatsLine struct {
	Queue      string `json:"queue"`
	Pending    int64  `json:"pending"`
	Processing int64  `json:"processing"`
	Ended      int64  `json:"ended"`
	Unleased   int64  `json:"unleased"`
	Completed  int64  `json:"completed"`
	Failed     int64  `json:"failed"`
	Dead       int64  `json:"dead"`
	Oldest     string `json:"oldest"`
}

func queueStatsCommand(a *app) *cobra.Command {
	var q wakebelltype.QueueKeys
	cmd := &cobra.Command{
		Use:   "stats --queue QUEUE",
		Short: "Show the counts of a queue",
		Long: `Shows the counts of a queue. With -o json it is one line with queue; pending,
messages that wait; processing, messages that a consumer holds or that wait for
their next attempt, of which ended have an expired lease and unleased are
delivered at most once; completed and failed, messages whose payloads are kept;
dead, the dead letters; and oldest, when the next message was published, if its
id tells.`,
		Example: `  wakebell queue stats --queue mail
  wakebell queue stats --queue mail -o json | jq .pending`,
		Args: cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return askQueues(ctx, a, func(c queues) error {
			st, err := c.Stats(ctx, q)
			if err != nil {
				return err
			}
			return printQueueStats(a, q, st)
		})
	})
	return cmd
}

func printQueueStats(a *app, q wakebelltype.QueueKeys, st wakebelltype.QueueStats) error {
	line := queueStatsLine{
		a.prefix + q.Name, st.Pending, st.Processing, st.Ended, st.Unleased, st.Completed, st.Failed, st.Dead, stamp(st.Oldest),
	}
	if a.wantsJSON() {
		return a.printJSON(line)
	}
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	return a.printRows([][2]string{
		{"queue", line.Queue},
		{"pending", n(st.Pending)},
		{"processing", n(st.Processing)},
		{"ended", n(st.Ended)},
		{"unleased", n(st.Unleased)},
		{"completed", n(st.Completed)},
		{"failed", n(st.Failed)},
		{"dead", n(st.Dead)},
		{"oldest", line.Oldest},
	})
}

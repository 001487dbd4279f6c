package queues

import (
	"context"

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
}

func statsCommand(a *cli.App) *cobra.Command {
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
	nameFlag(cmd, &q)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return ask(ctx, a, func(c client) error {
			st, err := c.Stats(ctx, q)
			if err != nil {
				return err
			}
			return printStats(a, q, st)
		})
	})
	return cmd
}

func printStats(a *cli.App, q wakebelltype.QueueKeys, st wakebelltype.QueueStats) error {
	line := statsLine{
		a.Prefix + q.Name, st.Pending, st.Processing, st.Ended, st.Unleased, st.Completed, st.Failed, st.Dead, output.Stamp(st.Oldest),
	}
	if a.WantsJSON() {
		return a.PrintJSON(line)
	}
	n := a.Screen().Count
	return a.PrintRows([][2]string{
		{"queue", line.Queue},
		{"pending", n(st.Pending)},
		{"processing", n(st.Processing)},
		{"ended", n(st.Ended)},
		{"unleased", n(st.Unleased)},
		{"completed", n(st.Completed)},
		{"failed", n(st.Failed)},
		{"dead", n(st.Dead)},
		{"oldest", a.Screen().Time(st.Oldest)},
	})
}

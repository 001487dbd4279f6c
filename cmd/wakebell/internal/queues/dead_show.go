package queues

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func deadShowCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	cmd := &cobra.Command{
		Use:   "show --queue QUEUE ENTRY",
		Short: "Show a dead letter with its body",
		Long: `Shows a dead letter, named by the entry that ls prints. The exit code is 3 if
there is none. With -o json it is one line with the fields of queue dead ls.`,
		Example: `  wakebell queue dead show --queue mail 6b3f… -o json | jq .body`,
		Args:    cobra.ExactArgs(1),
	}
	nameFlag(cmd, &q)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return ask(ctx, a, func(c client) error {
			l, err := c.DeadLetter(ctx, q, args[0])
			if err != nil {
				return err
			}
			d := newDeadLine(ctx, a, q, l)
			if a.WantsJSON() {
				return a.PrintJSON(d)
			}
			return a.PrintRows([][2]string{
				{"queue", d.Queue},
				{"entry", d.Entry},
				{"id", d.ID},
				{"reason", d.Reason},
				{"deliveries", strconv.Itoa(d.Deliveries)},
				{"died", a.Screen().Time(l.At)},
				{"body", d.Shown()},
			})
		})
	})
	return cmd
}

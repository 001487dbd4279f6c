package timers

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func deadShowCommand(a *cli.App) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "show --topic TOPIC ENTRY",
		Short: "Show a dead letter with its body",
		Long: `Shows a dead letter, named by the entry that ls prints. The exit code is 3 if
there is none. With -o json it is one line with the fields of dead ls.`,
		Example: `  wakebell dead show --topic invoices 1763724000000-0
  wakebell dead show -t invoices 1763724000000-0 -o json | jq .body`,
		Args: cobra.ExactArgs(1),
	}
	a.TopicFlag(cmd, &topic, "`topic` of the dead letter")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return deadShow(ctx, a, c, topic, args[0]) })
	})
	return cmd
}

func deadShow(ctx context.Context, a *cli.App, c wakebell.Operator, topic, entry string) error {
	letter, err := c.DeadLetter(ctx, topic, entry)
	if err != nil {
		return err
	}
	d := newDeadLine(ctx, a, topic, letter)
	if a.WantsJSON() {
		return a.PrintJSON(d)
	}
	rows := [][2]string{
		{"topic", d.Topic},
		{"entry", d.Entry},
		{"id", d.ID},
		{"reason", d.Reason},
		{"attempts", strconv.Itoa(d.Attempts)},
		{"failures", strconv.Itoa(d.Failures)},
		{"activation", a.Screen().Time(letter.Activation)},
		{"died", a.Screen().Time(letter.Died)},
	}
	return a.PrintRows(append(rows, d.Rows()...))
}

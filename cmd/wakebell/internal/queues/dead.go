package queues

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func deadCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Inspect, redrive and delete dead letters of a queue",
		Long: `A dead letter is a message that was rejected, delivered too often, or could not be
decoded. For dead letters of Python consumers only the body is known.`,
		Example: `  wakebell queue dead ls --queue mail
  wakebell queue dead redrive --queue mail --all --yes`,
		RunE: cli.MissingCommand,
	}
	cmd.AddCommand(deadLsCommand(a), deadShowCommand(a), deadRedriveCommand(a), deadRmCommand(a))
	return cmd
}

type deadLine struct {
	Queue      string `json:"queue"`
	Entry      string `json:"entry"`
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	Deliveries int    `json:"deliveries"`
	Died       string `json:"died"`
	output.Content
}

func newDeadLine(ctx context.Context, a *cli.App, q wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter) deadLine {
	return deadLine{a.Prefix + q.Name, l.Entry, l.ID, l.Reason, l.Deliveries, output.Stamp(l.At), a.MessageContent(ctx, q.Name, l.Payload)}
}

// deadChoice selects the dead letters of a queue that a command changes: one
// entry, or all.
type deadChoice struct {
	queue    wakebelltype.QueueKeys
	all, yes bool
	entry    string
}

func (f *deadChoice) register(cmd *cobra.Command) {
	nameFlag(cmd, &f.queue)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the queue")
	cli.YesFlag(cmd, &f.yes, "do not ask for confirmation")
}

func (f *deadChoice) choose(args []string) error {
	if f.all == (len(args) == 1) {
		return cli.Usagef("give either an entry or --all")
	}
	if len(args) == 1 {
		if f.entry = args[0]; f.entry == "" {
			return cli.Usagef("ENTRY: empty")
		}
	}
	return nil
}

// confirmDead asks before dead letters are changed.
func confirmDead(ctx context.Context, a *cli.App, c queue.Operator, f *deadChoice, verb string) error {
	return a.Confirm(f.yes, func() (string, error) {
		if f.entry != "" {
			return fmt.Sprintf("%s a dead letter of %s?", verb, a.Prefix+f.queue.Name), nil
		}
		st, err := c.Stats(ctx, f.queue)
		return fmt.Sprintf("%s %d dead letters of %s?", verb, st.Dead, a.Prefix+f.queue.Name), err
	})
}

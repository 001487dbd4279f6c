package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func queueDeadCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Inspect, redrive and delete dead letters of a queue",
		Long: `A dead letter is a message that was rejected, delivered too often, or could not be
decoded. For dead letters of Python consumers only the body is known.`,
		Example: `  wakebell queue dead ls --queue mail
  wakebell queue dead redrive --queue mail --all --yes`,
		RunE: missingCommand,
	}
	cmd.AddCommand(queueDeadLsCommand(a), queueDeadShowCommand(a), queueDeadRedriveCommand(a), queueDeadRmCommand(a))
	return cmd
}

type queueDeadLine struct {
	Queue      string `json:"queue"`
	Entry      string `json:"entry"`
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	Deliveries int    `json:"deliveries"`
	Died       string `json:"died"`
	content
}

func newQueueDeadLine(a *app, q wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter) queueDeadLine {
	return queueDeadLine{a.prefix + q.Name, l.Entry, l.ID, l.Reason, l.Deliveries, stamp(l.At), payload(l.Payload)}
}

// queueDeadChoice selects the dead letters of a queue that a command changes: one
// entry, or all.
type queueDeadChoice struct {
	queue    wakebelltype.QueueKeys
	all, yes bool
	entry    string
}

func (f *queueDeadChoice) register(cmd *cobra.Command) {
	queueFlag(cmd, &f.queue)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the queue")
	yesFlag(cmd, &f.yes, "do not ask for confirmation")
}

func (f *queueDeadChoice) choose(args []string) error {
	if f.all == (len(args) == 1) {
		return usagef("give either an entry or --all")
	}
	if len(args) == 1 {
		if f.entry = args[0]; f.entry == "" {
			return usagef("ENTRY: empty")
		}
	}
	return nil
}

// confirmQueueDead asks before dead letters are changed.
func confirmQueueDead(ctx context.Context, a *app, c queue.Operator, f *queueDeadChoice, verb string) error {
	return a.confirm(f.yes, func() (string, error) {
		if f.entry != "" {
			return fmt.Sprintf("%s a dead letter of %s?", verb, a.prefix+f.queue.Name), nil
		}
		st, err := c.Stats(ctx, f.queue)
		return fmt.Sprintf("%s %d dead letters of %s?", verb, st.Dead, a.prefix+f.queue.Name), err
	})
}

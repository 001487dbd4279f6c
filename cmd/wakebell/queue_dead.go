package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) queueDeadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters of a queue, redrive and delete them",
		Long: `Dead letters are messages that were given up: rejected, delivered too often, or
unreadable. Of those that Python consumers gave up only the body is known.`,
		Example: `  wakebell queue dead ls --queue mail
  wakebell queue dead redrive --queue mail --all --yes`,
		RunE: missingCommand,
	}
	cmd.AddCommand(a.queueDeadLsCommand(), a.queueDeadShowCommand(), a.queueDeadRedriveCommand(), a.queueDeadRmCommand())
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

func (a *app) queueDeadLine(q wakebell.QueueName, l wakebell.QueueLetter) queueDeadLine {
	return queueDeadLine{a.prefix + q.Name, l.Entry, l.ID, l.Reason, l.Deliveries, stamp(l.At), payload(l.Payload)}
}

// letterChoice is what a command that changes dead letters of a queue is given:
// one entry, or all.
type letterChoice struct {
	queue    wakebell.QueueName
	all, yes bool
	entry    string
}

func (f *letterChoice) register(cmd *cobra.Command) {
	queueFlag(cmd, &f.queue)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the queue")
	yesFlag(cmd, &f.yes, "do not ask")
}

func (f *letterChoice) choose(args []string) error {
	if f.all == (len(args) == 1) {
		return usagef("give one of an entry and --all")
	}
	if len(args) == 1 {
		if f.entry = args[0]; f.entry == "" {
			return usagef("the entry is empty")
		}
	}
	return nil
}

// confirmed asks, unless it is about one letter and nothing is lost.
func (a *app) confirmed(ctx context.Context, c wakebell.QueueOperator, f *letterChoice, verb string) error {
	return a.confirm(f.yes, func() (string, error) {
		if f.entry != "" {
			return fmt.Sprintf("%s a dead letter of %s?", verb, a.prefix+f.queue.Name), nil
		}
		st, err := c.QueueStats(ctx, f.queue)
		return fmt.Sprintf("%s %d dead letters of %s?", verb, st.Dead, a.prefix+f.queue.Name), err
	})
}

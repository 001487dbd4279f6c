package timers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

func deadCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Inspect, redrive and delete dead letters",
		Long:  "A dead letter is a timer that was rejected, failed too often, or could not be decoded.",
		Example: `  wakebell dead ls --topic invoices
  wakebell dead redrive --topic invoices --reason 'card declined' --yes`,
		RunE: cli.MissingCommand,
	}
	cmd.AddCommand(deadLsCommand(a), deadShowCommand(a), deadRedriveCommand(a), deadRmCommand(a))
	return cmd
}

type deadLine struct {
	Topic      string `json:"topic"`
	Entry      string `json:"entry"`
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	Attempts   int    `json:"attempts"`
	Failures   int    `json:"failures"`
	Activation string `json:"activation"`
	Died       string `json:"died"`
	Key        string `json:"key"`
	output.Content
}

func newDeadLine(ctx context.Context, a *cli.App, topic string, d wakebell.DeadLetter) deadLine {
	return deadLine{
		Topic: d.Topic, Entry: d.Entry, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, Failures: d.Failures,
		Activation: output.Stamp(d.Activation), Died: output.Stamp(d.Died), Key: d.Key, Content: a.Content(ctx, topic, d.ID, d.Content),
	}
}

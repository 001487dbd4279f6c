package main

import (
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func deadCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Inspect, redrive and delete dead letters",
		Long:  "A dead letter is a timer that was rejected, failed too often, or could not be decoded.",
		Example: `  wakebell dead ls --topic invoices
  wakebell dead redrive --topic invoices --reason 'card declined' --yes`,
		RunE: missingCommand,
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
	content
}

func newDeadLine(d wakebell.DeadLetter) deadLine {
	return deadLine{
		Topic: d.Topic, Entry: d.Entry, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, Failures: d.Failures,
		Activation: stamp(d.Activation), Died: stamp(d.Died), content: newContent(d.Content),
	}
}

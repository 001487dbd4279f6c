package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dead",
		Short:   "Look at dead letters",
		Long:    "Dead letters are timers that were given up: rejected, failed too often, or unreadable.",
		Example: "  wakebell dead ls --topic invoices",
		RunE:    missingCommand,
	}
	cmd.AddCommand(a.deadLsCommand())
	return cmd
}

func (a *app) deadLsCommand() *cobra.Command {
	var topic string
	var limit int
	cmd := &cobra.Command{
		Use:   "ls --topic TOPIC",
		Short: "List the dead letters of a topic, oldest first",
		Long: `Lists the dead letters of a topic, oldest first. A timer may have several.

With -o json each is a line with topic, entry, id, reason, attempts, failures,
activation, died and, as a node prints them, content_type, headers,
correlation_id, reply_to, and body or body_base64.`,
		Example: `  wakebell dead ls --topic invoices
  wakebell dead ls -t invoices --limit 0 -o json | jq -r .reason | sort | uniq -c`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "`topic` to list")
	limitFlag(cmd, &limit)
	_ = cmd.MarkFlagRequired("topic") // the flag is there, so this cannot fail
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return a.withClient(func(c *wakebell.Client) error { return a.deadLs(ctx, c, topic, limit) })
	})
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

func (a *app) deadLs(ctx context.Context, c *wakebell.Client, topic string, limit int) error {
	if limit < 0 {
		return usagef("--limit: %d is negative", limit)
	}
	list := a.newListing(limit, "ENTRY", "ID", "DIED", "ATTEMPTS", "FAILURES", "REASON")
	for d, err := range c.DeadLetters(ctx, topic, wakebell.DeadFilter{}) {
		if err != nil {
			return err
		}
		if list.full() {
			break
		}
		line := deadLine{
			Topic: d.Topic, Entry: d.Entry, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, Failures: d.Failures,
			Activation: stamp(d.Activation), Died: stamp(d.Died), content: newContent(d.Content),
		}
		err := list.add(line, d.Entry, d.ID, line.Died, strconv.Itoa(d.Attempts), strconv.Itoa(d.Failures), d.Reason)
		if err != nil {
			return err
		}
	}
	return list.end()
}

package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters, redrive and delete them",
		Long:  "Dead letters are timers that were given up: rejected, failed too often, or unreadable.",
		Example: `  wakebell dead ls --topic invoices
  wakebell dead redrive --topic invoices --reason 'card declined' --yes`,
		RunE: missingCommand,
	}
	cmd.AddCommand(a.deadLsCommand(), a.deadShowCommand(), a.deadRedriveCommand(), a.deadRmCommand())
	return cmd
}

type deadLsFlags struct {
	deadFlags
	limit int
}

func (a *app) deadLsCommand() *cobra.Command {
	f := &deadLsFlags{}
	cmd := &cobra.Command{
		Use:   "ls --topic TOPIC",
		Short: "List the dead letters of a topic, oldest first",
		Long: `Lists the dead letters of a topic, oldest first. A timer may have several.
Filters may be combined.

With -o json each is a line with topic, entry, id, reason, attempts, failures,
activation, died and, as a node prints them, content_type, headers,
correlation_id, reply_to, and body or body_base64.`,
		Example: `  wakebell dead ls --topic invoices
  wakebell dead ls -t invoices --reason 'card declined' --newer-than 24h
  wakebell dead ls -t invoices --limit 0 -o json | jq -r .reason | sort | uniq -c`,
		Args: cobra.NoArgs,
	}
	f.register(a, cmd)
	limitFlag(cmd, &f.limit)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return a.ask(ctx, func(c asked) error { return a.deadLs(ctx, c, f) })
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

func newDeadLine(d wakebell.DeadLetter) deadLine {
	return deadLine{
		Topic: d.Topic, Entry: d.Entry, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, Failures: d.Failures,
		Activation: stamp(d.Activation), Died: stamp(d.Died), content: newContent(d.Content),
	}
}

func (a *app) deadLs(ctx context.Context, c wakebell.Operator, f *deadLsFlags) error {
	if f.limit < 0 {
		return usagef("--limit: %d is negative", f.limit)
	}
	filter, err := f.filter()
	if err != nil {
		return err
	}
	list := a.newListing(f.limit, "ENTRY", "ID", "DIED", "ATTEMPTS", "FAILURES", "REASON")
	for d, err := range c.DeadLetters(ctx, f.topic, filter) {
		if err != nil {
			return err
		}
		if list.full() {
			break
		}
		line := newDeadLine(d)
		err := list.add(line, d.Entry, d.ID, line.Died, strconv.Itoa(d.Attempts), strconv.Itoa(d.Failures), d.Reason)
		if err != nil {
			return err
		}
	}
	return list.end()
}

func (a *app) deadShowCommand() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "show --topic TOPIC ENTRY",
		Short: "Show a dead letter with its body",
		Long: `Shows all of a dead letter, which ls names by its entry; 3 is the exit code when
there is none. With -o json it is one line with the fields of dead ls.`,
		Example: `  wakebell dead show --topic invoices 1763724000000-0
  wakebell dead show -t invoices 1763724000000-0 -o json | jq .body`,
		Args: cobra.ExactArgs(1),
	}
	a.topicFlag(cmd, &topic, "`topic` of the dead letter")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.ask(ctx, func(c asked) error { return a.deadShow(ctx, c, topic, args[0]) })
	})
	return cmd
}

func (a *app) deadShow(ctx context.Context, c wakebell.Operator, topic, entry string) error {
	letter, err := c.DeadLetter(ctx, topic, entry)
	if err != nil {
		return err
	}
	d := newDeadLine(letter)
	if a.wantsJSON() {
		return a.printJSON(d)
	}
	rows := [][2]string{
		{"topic", d.Topic},
		{"entry", d.Entry},
		{"id", d.ID},
		{"reason", d.Reason},
		{"attempts", strconv.Itoa(d.Attempts)},
		{"failures", strconv.Itoa(d.Failures)},
		{"activation", d.Activation},
		{"died", d.Died},
	}
	return a.printRows(append(rows, d.rows()...))
}

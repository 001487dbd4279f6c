package topics

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func doctorCommand(a *cli.App) *cobra.Command {
	var topics []string
	cmd := &cobra.Command{
		Use:   "doctor [--topic TOPIC]...",
		Short: "Check whether Redis is configured for timers",
		Long: `Checks the server, or every master of a Cluster: reachable (and latency),
version, eviction, memory, persistence, replicas, clock, and beats (that fire
recurring schedules). Then it checks each topic, by default all that topics lists:
slots (of a Cluster), types (of the keys), scripts, rights (of the user), orders
(settings for all nodes), orphans (data without a timer), nodes (that handle it).

Without --topic it checks each known queue as well: whether its keys can be read,
and whether expired leases are claimed again.

Each check is a line: bad; unknown, if the check failed; warn, if timers can be
late or lost in the case that it names; or good. They are in this order. The line
below says what to do. A summary ends the list. The exit code is 1 if a check is
bad. Nothing is written.

With -o json each is a line with grade, check, server (of a Cluster), topic,
queue (of the check of a queue), found and do.`,
		Example: `  wakebell doctor
  wakebell doctor --topic invoices -o json | jq -r 'select(.grade == "bad") | .do'`,
		Args: cli.NoArgs,
	}
	a.TopicsFlag(cmd, &topics, "`topic` to check (default all)")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		prefix := a.Prefix
		return withTopics(ctx, a, topics, false, wakebelltype.Page{}, func(c cli.Client, names topicNames) error {
			return diagnose(ctx, a, c, names, len(topics) > 0, prefix)
		})
	})
	return cmd
}

type findingLine struct {
	Grade  string `json:"grade"`
	Check  string `json:"check"`
	Server string `json:"server"`
	Topic  string `json:"topic"`
	Queue  string `json:"queue,omitempty"`
	Found  string `json:"found"`
	Do     string `json:"do"`
}

func diagnose(ctx context.Context, a *cli.App, c cli.Client, names topicNames, given bool, prefix string) error {
	topics, err := names(ctx)
	switch {
	case err != nil && given:
		return err
	case err != nil && len(topics) > 0:
		a.Notef("wakebell: topics on servers that do not answer are not checked: %s\n", output.Escape(output.Fault(err)))
	case err != nil: // the checks of the server report the cause
		a.Notef("wakebell: no topic is checked, because topics cannot be listed: %s\n", output.Escape(output.Fault(err)))
	case len(topics) == 0:
		a.Notef("wakebell: no topic is checked, because there is none; name one with --topic\n")
	}
	stop := a.Elapsed(ctx, "check")
	findings, err := c.Diagnose(ctx, topics...)
	stop()
	if err != nil {
		return err
	}
	lines := make([]findingLine, len(findings))
	for i, f := range findings {
		lines[i] = findingLine{Grade: string(f.Grade), Check: f.Check, Server: f.Server, Topic: f.Topic, Found: f.Found, Do: f.Do}
	}
	if !given {
		queues, _ := knownQueues(ctx, c.QueueOperator(), prefix, 0, wakebelltype.Page{}) // the checks of the server report the cause
		progress := a.Progress("check", int64(len(queues)))
		defer progress.End()
		for _, q := range queues {
			progress.Add(1)
			lines = append(lines, queueFinding(q), recordsFinding(q, readRecords(ctx, c.QueueOperator(), q.keys)))
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return printFindings(a, lines)
}

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
	var all bool
	cmd := &cobra.Command{
		Use:   "doctor [--topic TOPIC]...",
		Short: "Check whether Redis is configured for timers",
		Long: `Checks the server, or every master of a Cluster: reachable (and latency),
version, eviction, memory, persistence, replicas, clock. Then owners (keys that
belong to no topic), beats (that fire recurring schedules) and versions (of nodes).
Then it checks each topic, by default all that topics lists: slots (of a Cluster),
types (of the keys), scripts, rights (of the user), orders (settings for all nodes),
orphans (data without a timer), nodes (that handle it), progress (timers that are
late, or handlers that are stuck), dead (dead letters that grow), settings (in which
nodes differ).

Without --topic it checks each known queue as well: whether its keys can be read,
whether consumers take its messages, whether expired leases are claimed again, and
whether its dead letters grow.

It shows what is not good, the worst first, and with --all the rest. Each check is a
line: bad; unknown, if the check failed; warn, if timers can be late or lost in the
case that it names; or good. They are in this order. The line below says what to do.
Of many topics with the same warning it shows ten. A summary ends the list. The exit
code is 1 if a check is bad. Nothing is written.

With -o json each is a line with grade, check, server (of a Cluster), topic,
queue (of the check of a queue), found and do; what is good with --all only.`,
		Example: `  wakebell doctor
  wakebell doctor --all
  wakebell doctor --topic invoices -o json | jq -r 'select(.grade == "bad") | .do'`,
		Args: cli.NoArgs,
	}
	a.TopicsFlag(cmd, &topics, "`topic` to check (default all)")
	cmd.Flags().BoolVar(&all, "all", false, "show what is good as well")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		prefix := a.Prefix
		return withTopics(ctx, a, topics, false, wakebelltype.Page{}, func(c cli.Client, names topicNames) error {
			lines, err := diagnose(ctx, a, c, names, len(topics) > 0, prefix)
			if err != nil {
				return err
			}
			return printFindings(a, lines, all)
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

func diagnose(ctx context.Context, a *cli.App, c cli.Client, names topicNames, given bool, prefix string) ([]findingLine, error) {
	topics, err := names(ctx)
	switch {
	case err != nil && given:
		return nil, err
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
		return nil, err
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
			recent, err := readRecords(ctx, c.QueueOperator(), q.keys)
			lines = append(lines, queueFinding(q), deadFinding(q, recent, err), recordsFinding(q, err))
		}
	}
	return lines, ctx.Err()
}

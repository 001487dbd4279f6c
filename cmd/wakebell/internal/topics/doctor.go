package topics

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
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
version, eviction, memory, persistence, replicas, clock. Then it checks each
topic, by default all that topics lists: slots (of a Cluster), types (of the
keys), scripts, rights (of the user), orders (settings for all nodes), orphans
(data without a timer).

Each check is a line: good; warn, if timers can be late or lost in the case that
it names; bad; or unknown, if the check failed. The line below says what to do.
The exit code is 1 if a check is bad. Nothing is written.

With -o json each is a line with grade, check, server (of a Cluster), topic,
found and do.`,
		Example: `  wakebell doctor
  wakebell doctor --topic invoices -o json | jq -r 'select(.grade == "bad") | .do'`,
		Args: cobra.NoArgs,
	}
	a.TopicsFlag(cmd, &topics, "`topic` to check (default all)")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return withTopics(ctx, a, topics, false, wakebelltype.Page{}, func(c wakebell.Operator, names topicNames) error { return diagnose(ctx, a, c, names, len(topics) > 0) })
	})
	return cmd
}

type findingLine struct {
	Grade  string `json:"grade"`
	Check  string `json:"check"`
	Server string `json:"server"`
	Topic  string `json:"topic"`
	Found  string `json:"found"`
	Do     string `json:"do"`
}

func diagnose(ctx context.Context, a *cli.App, c wakebell.Operator, names topicNames, given bool) error {
	topics, err := names(ctx)
	switch {
	case err != nil && given:
		return err
	case err != nil: // the checks of the server report the cause
		a.Notef("wakebell: no topic is checked, because topics cannot be listed: %s\n", output.Escape(output.Fault(err)))
	case len(topics) == 0:
		a.Notef("wakebell: no topic is checked, because there is none; name one with --topic\n")
	}
	findings, err := c.Diagnose(ctx, topics...)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	bad := 0
	for _, f := range findings {
		if f.Grade == wakebelltype.GradeBad {
			bad++
		}
		line := findingLine{string(f.Grade), f.Check, f.Server, f.Topic, f.Found, f.Do}
		if err := printFinding(a, line); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d checks are bad", bad, len(findings))
	}
	return nil
}

// printFinding prints a finding and, on a second line, what to do about it.
func printFinding(a *cli.App, f findingLine) error {
	if a.WantsJSON() {
		return a.PrintJSON(f)
	}
	of := f.Server + f.Topic
	if of != "" {
		of += ": "
	}
	if err := a.Printf("%-7s  %-11s  %s\n", f.Grade, f.Check, output.Escape(of+f.Found)); err != nil || f.Do == "" {
		return err
	}
	return a.Printf("%22s-> %s\n", "", output.Escape(f.Do))
}

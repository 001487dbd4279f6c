package schedules

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/recurring"
)

// recurringLine is the JSON line of schedules ls.
type recurringLine struct {
	Name    string `json:"name"`
	Topic   string `json:"topic"`
	Rule    string `json:"rule"`
	Zone    string `json:"zone"`
	Next    string `json:"next"`
	LastRun string `json:"last_run"`
	Runs    int64  `json:"runs"`
	Paused  bool   `json:"paused"`
	Celery  bool   `json:"celery"`
	Fault   string `json:"fault"`

	Unattended string `json:"unattended"` // for how long the next run has been due
}

func newRecurringLine(prefix string, s recurring.State) recurringLine {
	topic := s.Topic
	if topic != "" && !s.Celery {
		topic = prefix + topic
	}
	return recurringLine{
		s.Name, topic, s.RuleText, s.Rule.Zone, output.Stamp(s.Next), output.Stamp(s.LastRun), s.Runs, s.Paused, s.Celery, s.Fault,
		attended.Unfired(s.Overdue),
	}
}

func lsCommand(a *cli.App) *cobra.Command {
	var page cli.PageFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List recurring schedules",
		Long: `Lists all recurring schedules by name, Python's included. A schedule that cannot
be decoded has a fault, and beats ignore it; for one whose next run has been due for over
a minute, the fault says for how long (unattended in JSON). Crontabs of Python have no time zone:
--zone is that of the Celery app.

With -o json each is a line with name, topic (or the task), rule, zone, next,
last_run, runs, paused, celery, fault and unattended.`,
		Example: `  wakebell schedules ls -o json | jq 'select(.fault != "")'`,
		Args:    cli.NoArgs,
	}
	page.Register(cmd, 0)
	a.OutputFlag(cmd)
	zoneFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, _ []string) error {
		screen := a.Screen()
		list := a.NewListing(page.Limit, output.Text("NAME"), output.Text("TOPIC"), output.Text("RULE"), output.Short("NEXT"), output.Numeric("RUNS").AsMinor(),
			output.Short("PAUSED").StyledBy(output.WarnIfYes), output.Text("FAULT").AsRare().Styled(output.Bad))
		doubtful := recurring.State{}
		err := cli.PrintAll(list, s.List(ctx, page.Page()), scheduleCursor, func(state recurring.State) (any, []string) {
			if doubtful.ZoneWarning == "" {
				doubtful = state
			}
			l := newRecurringLine(a.Prefix, state)
			return l, []string{l.Name, l.Topic, l.Rule, screen.Time(state.Next), screen.Count(l.Runs), output.YesNo(l.Paused), cmp.Or(l.Fault, l.Unattended)}
		})
		if doubtful.ZoneWarning != "" {
			a.Notef("wakebell: warning: %s, and perhaps others: %s\n", output.Escape(doubtful.Name), doubtful.ZoneWarning)
		}
		return err
	})
}

func scheduleCursor(s recurring.State) string { return s.Cursor }

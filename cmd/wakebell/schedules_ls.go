package main

import (
	"context"

	"github.com/spf13/cobra"

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
}

func newRecurringLine(prefix string, s recurring.State) recurringLine {
	topic := s.Topic
	if topic != "" && !s.Celery {
		topic = prefix + topic
	}
	return recurringLine{
		s.Name, topic, s.RuleText, s.Rule.Zone, stamp(s.Next), stamp(s.LastRun), s.Runs, s.Paused, s.Celery, s.Fault,
	}
}

func schedulesLsCommand(a *app) *cobra.Command {
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List recurring schedules",
		Long: `Lists all recurring schedules by name, Python's included. A schedule that cannot
be decoded has a fault, and beats ignore it.

With -o json each is a line with name, topic (or the task), rule, zone, next,
last_run, runs, paused, celery and fault.`,
		Example: `  wakebell schedules ls -o json | jq 'select(.fault != "")'`,
		Args:    cobra.NoArgs,
	}
	page.register(cmd, 0)
	a.outputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, _ []string) error {
		list := a.newListing(page.limit, "NAME", "TOPIC", "RULE", "NEXT", "RUNS", "PAUSED", "FAULT")
		return printAll(list, s.List(ctx, page.page()), scheduleCursor, func(state recurring.State) (any, []string) {
			l := newRecurringLine(a.prefix, state)
			return l, []string{l.Name, l.Topic, l.Rule, l.Next, number(l.Runs), yesNo(l.Paused), l.Fault}
		})
	})
}

func scheduleCursor(s recurring.State) string { return s.Cursor }

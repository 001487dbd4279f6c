package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

// recurringLine is a recurring schedule as it is printed.
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

func newRecurringLine(prefix string, s wakebell.RecurringState) recurringLine {
	topic := s.Topic
	if topic != "" && !s.Celery {
		topic = prefix + topic
	}
	return recurringLine{
		s.Name, topic, s.Rule, s.Recurrence.Zone, stamp(s.Next), stamp(s.LastRun), s.Runs, s.Paused, s.Celery, s.Fault,
	}
}

func (a *app) schedulesLsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List recurring schedules",
		Long: `Lists all recurring schedules by name, those of Python too. What cannot be read
has a fault, and is left alone by the beat.

With -o json each is a line with name, topic (or the task), rule, zone, next,
last_run, runs, paused, celery and fault.`,
		Example: `  wakebell schedules ls -o json | jq 'select(.fault != "")'`,
		Args:    cobra.NoArgs,
	}
	a.outputFlag(cmd)
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, _ []string) error {
		var all []recurringLine
		for state, err := range s.List(ctx) {
			if err != nil {
				return err
			}
			all = append(all, newRecurringLine(a.prefix, state))
		}
		slices.SortFunc(all, func(x, y recurringLine) int { return cmp.Compare(x.Name, y.Name) })
		list := a.newListing(0, "NAME", "TOPIC", "RULE", "NEXT", "RUNS", "PAUSED", "FAULT")
		for _, l := range all {
			if err := list.add(l, l.Name, l.Topic, l.Rule, l.Next, number(l.Runs), yesNo(l.Paused), l.Fault); err != nil {
				return err
			}
		}
		return list.end()
	})
}

func (a *app) schedulesShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a recurring schedule",
		Long: `Shows a recurring schedule; exit code 3 when there is none.

With -o json it is a line with the fields of ls, and jitter, start, until,
max_runs, misfire and overlap.`,
		Example: `  wakebell schedules show nightly`,
		Args:    cobra.ExactArgs(1),
	}
	a.outputFlag(cmd)
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, args []string) error {
		state, err := s.Get(ctx, args[0])
		if err != nil {
			return err
		}
		return a.showRecurring(state)
	})
}

func (a *app) showRecurring(s wakebell.RecurringState) error {
	l, w := newRecurringLine(a.prefix, s), s.Recurrence
	misfire, overlap := cmp.Or(string(w.Misfire), "once"), cmp.Or(string(w.Overlap), "allow")
	if a.wantsJSON() {
		return a.printJSON(struct {
			recurringLine
			Jitter  string `json:"jitter"`
			Start   string `json:"start"`
			Until   string `json:"until"`
			MaxRuns int64  `json:"max_runs"`
			Misfire string `json:"misfire"`
			Overlap string `json:"overlap"`
		}{l, w.Jitter.String(), stamp(w.Start), stamp(w.Until), w.MaxRuns, misfire, overlap})
	}
	return a.printRows([][2]string{
		{"name", l.Name},
		{"topic", l.Topic},
		{"rule", l.Rule},
		{"zone", l.Zone},
		{"next", l.Next},
		{"last run", l.LastRun},
		{"runs", number(l.Runs)},
		{"paused", yesNo(l.Paused)},
		{"celery", yesNo(l.Celery)},
		{"jitter", w.Jitter.String()},
		{"start", stamp(w.Start)},
		{"until", stamp(w.Until)},
		{"max runs", number(w.MaxRuns)},
		{"misfire", misfire},
		{"overlap", overlap},
		{"fault", l.Fault},
	})
}

func (a *app) schedulesPreviewCommand() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "preview NAME",
		Short: "Show when a recurring schedule is due next",
		Long: `Prints the next instants of a recurring schedule, fewer where it ends, none
while it is paused; exit code 3 when there is none.

With -o json each is a line with name and due.`,
		Example: `  wakebell schedules preview nightly -n 5`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().IntVarP(&n, "n", "n", 10, "how many instants, up to 10,000")
	a.outputFlag(cmd)
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, args []string) error {
		next, err := s.Preview(ctx, args[0], n)
		if err != nil {
			return err
		}
		for _, at := range next {
			if a.wantsJSON() {
				err = a.printJSON(struct {
					Name string `json:"name"`
					Due  string `json:"due"`
				}{args[0], stamp(at)})
			} else {
				err = a.printf("%s\n", stamp(at))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) schedulesExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Print recurring schedules for import",
		Long: `Prints recurring schedules as they are kept, those named or all that can be
read: one JSON line each, with name, definition, meta and wakebell (what RedBeat
does not have). What cannot be read is told on stderr, and the exit code is 1.`,
		Example: `  wakebell schedules export > schedules.jsonl`,
	}
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, names []string) error {
		if len(names) == 0 {
			for state, err := range s.List(ctx) {
				if err != nil {
					return err
				}
				names = append(names, state.Name)
			}
			slices.Sort(names)
		}
		var fault error
		for _, name := range names {
			dump, err := s.Export(ctx, name)
			if err == nil {
				err = a.printJSON(dump)
			} else {
				fault = errors.Join(fault, err)
				continue
			}
			if err != nil {
				return err
			}
		}
		return fault
	})
}

func (a *app) schedulesImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Store what export printed",
		Long: `Reads lines as export prints them from stdin and stores each recurring schedule
in place of the one of its name. It goes on where it was when it was exported:
what is overdue since counts as missed. The first that cannot be read ends it.`,
		Example: `  wakebell schedules import < schedules.jsonl`,
		Args:    cobra.NoArgs,
	}
	return a.onSchedules(cmd, func(ctx context.Context, s wakebell.RecurringSchedules, _ []string) error {
		lines := json.NewDecoder(a.stdin)
		for lines.More() {
			var dump wakebell.ScheduleDump
			if err := lines.Decode(&dump); err != nil {
				return usagef("stdin: %v", err)
			}
			if err := s.Import(ctx, dump); err != nil {
				return err
			}
			if err := a.printf("%s\n", escape(dump.Name)); err != nil {
				return err
			}
		}
		return nil
	})
}

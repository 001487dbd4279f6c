package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/recurring"
)

func schedulesShowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a recurring schedule",
		Long: `Shows a recurring schedule. The exit code is 3 if there is none.

With -o json it is a line with the fields of ls, and jitter, start, until,
max_runs, misfire and overlap.`,
		Example: `  wakebell schedules show nightly`,
		Args:    cobra.ExactArgs(1),
	}
	a.outputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) error {
		state, err := s.Get(ctx, args[0])
		if err != nil {
			return err
		}
		return showRecurring(a, state)
	})
}

func showRecurring(a *app, s recurring.State) error {
	l, w := newRecurringLine(a.prefix, s), s.Rule
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

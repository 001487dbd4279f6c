package schedules

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/recurring"
)

func showCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a recurring schedule",
		Long: `Shows a recurring schedule. The exit code is 3 if there is none.

With -o json it is a line with the fields of ls, and jitter, start, until,
max_runs, misfire and overlap.`,
		Example: `  wakebell schedules show nightly`,
		Args:    cobra.ExactArgs(1),
	}
	a.OutputFlag(cmd)
	zoneFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) error {
		state, err := s.Get(ctx, args[0])
		if err != nil {
			return err
		}
		if state.ZoneWarning != "" {
			a.Notef("wakebell: warning: %s\n", state.ZoneWarning)
		}
		return showRecurring(a, state)
	})
}

func showRecurring(a *cli.App, s recurring.State) error {
	l, w := newRecurringLine(a.Prefix, s), s.Rule
	misfire, overlap := cmp.Or(string(w.Misfire), "once"), cmp.Or(string(w.Overlap), "allow")
	if a.WantsJSON() {
		return a.PrintJSON(struct {
			recurringLine
			Jitter  string `json:"jitter"`
			Start   string `json:"start"`
			Until   string `json:"until"`
			MaxRuns int64  `json:"max_runs"`
			Misfire string `json:"misfire"`
			Overlap string `json:"overlap"`
		}{l, w.Jitter.String(), output.Stamp(w.Start), output.Stamp(w.Until), w.MaxRuns, misfire, overlap})
	}
	return a.PrintRows([][2]string{
		{"name", l.Name},
		{"topic", l.Topic},
		{"rule", l.Rule},
		{"zone", l.Zone},
		{"next", a.Screen().Time(s.Next)},
		{"last run", a.Screen().Time(s.LastRun)},
		{"runs", output.Number(l.Runs)},
		{"paused", output.YesNo(l.Paused)},
		{"celery", output.YesNo(l.Celery)},
		{"jitter", w.Jitter.String()},
		{"start", a.Screen().Time(w.Start)},
		{"until", a.Screen().Time(w.Until)},
		{"max runs", output.Number(w.MaxRuns)},
		{"misfire", misfire},
		{"overlap", overlap},
		{"fault", l.Fault},
	})
}

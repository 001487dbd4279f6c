package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

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

package schedules

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/recurring"
)

func importCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Store what export printed",
		Long: `Reads lines of export from stdin and stores each recurring schedule, replacing the
one with the same name. A schedule continues where it was at the export: overdue
runs count as missed. It stops at the first line that cannot be decoded.

It prints the names; with -o json each is a line with name and change (imported).`,
		Example: `  wakebell schedules import < schedules.jsonl`,
		Args:    cli.NoArgs,
	}
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, _ []string) error {
		lines := json.NewDecoder(a.Stdin)
		for lines.More() {
			var dump recurring.Dump
			if err := lines.Decode(&dump); err != nil {
				return cli.Usagef("stdin: %v", err)
			}
			if err := s.Import(ctx, dump); err != nil {
				return err
			}
			if err := printImported(a, dump.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

func printImported(a *cli.App, name string) error {
	if a.WantsJSON() {
		return printChanged(a, name, "imported")
	}
	return a.Printf("%s\n", output.Escape(name))
}

package schedules

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

func exportCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Print recurring schedules for import",
		Long: `Prints the named recurring schedules, by default all, as they are stored: one JSON
line each, with name, definition, meta and wakebell (fields that RedBeat does not
have). Schedules that cannot be read are reported on stderr, and the exit code is
1.`,
		Example: `  wakebell schedules export > schedules.jsonl`,
	}
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, names []string) error {
		if len(names) == 0 {
			for state, err := range s.List(ctx, wakebelltype.Page{}) {
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
				err = a.PrintJSON(dump)
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

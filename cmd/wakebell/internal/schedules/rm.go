package schedules

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
)

func rmCommand(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove recurring schedules",
		Long: `Removes recurring schedules; timers that they have fired stay. It asks for
confirmation on a terminal and requires --yes elsewhere. It stops at the first
absent schedule, with exit code 3.

With -o json each is a line with name and change (removed).`,
		Example: `  wakebell schedules rm nightly --yes`,
		Args:    cobra.MinimumNArgs(1),
	}
	a.OutputFlag(cmd)
	cli.YesFlag(cmd, &yes, "do not ask for confirmation")
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, names []string) error {
		err := a.Confirm(yes, func() (string, error) {
			return fmt.Sprintf("Remove %s?", strings.Join(names, ", ")), nil
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := s.Delete(ctx, name); err != nil {
				return err
			}
			if err := printChanged(a, name, "removed"); err != nil {
				return err
			}
		}
		return nil
	})
}

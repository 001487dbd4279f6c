// Package timers has the commands for single timers and for dead letters.
package timers

import (
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// Commands returns the commands for single timers and for dead letters.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		scheduleCommand(a), getCommand(a), waitCommand(a), explainCommand(a), lsCommand(a), cancelCommand(a), rescheduleCommand(a), runNowCommand(a), historyCommand(a), deadCommand(a),
	}
}

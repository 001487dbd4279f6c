// Package topics has the commands for whole topics: counts, events, checks, pauses
// and overrides.
package topics

import (
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// Commands returns the commands for whole topics.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		topicsCommand(a), statsCommand(a), tailCommand(a), doctorCommand(a), pauseCommand(a), resumeCommand(a), retuneCommand(a), repairCommand(a),
	}
}

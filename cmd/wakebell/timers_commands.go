package main

import "github.com/spf13/cobra"

// timersCommands returns the commands for single timers and for dead letters.
func timersCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		scheduleCommand(a), getCommand(a), lsCommand(a), cancelCommand(a), rescheduleCommand(a), runNowCommand(a), deadCommand(a),
	}
}

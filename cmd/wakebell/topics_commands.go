package main

import "github.com/spf13/cobra"

// topicsCommands returns the commands for whole topics.
func topicsCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		topicsCommand(a), statsCommand(a), tailCommand(a), doctorCommand(a), pauseCommand(a), resumeCommand(a), retuneCommand(a),
	}
}

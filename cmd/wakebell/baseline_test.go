package main

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/baseline"
)

// Scripts of users have these commands and flags.
func TestCommandsAndFlags(t *testing.T) {
	t.Parallel()
	baseline.Require(t, "baseline/commands.txt", commandsOf(newRoot(&cli.App{})))
}

func commandsOf(cmd *cobra.Command) (lines []string) {
	name := cmd.CommandPath()
	lines = append(lines, name)
	for _, alias := range cmd.Aliases {
		lines = append(lines, fmt.Sprintf("%s = %s", alias, name))
	}
	add := func(f *pflag.Flag) {
		line := fmt.Sprintf("%s --%s %s", name, f.Name, f.Value.Type())
		if f.Shorthand != "" {
			line += " -" + f.Shorthand
		}
		if f.DefValue != "" {
			line += fmt.Sprintf(", default %q", f.DefValue)
		}
		lines = append(lines, line)
	}
	cmd.LocalNonPersistentFlags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, sub := range cmd.Commands() {
		lines = append(lines, commandsOf(sub)...)
	}
	return lines
}

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Choice is a flag with a few allowed values.
type Choice struct {
	value   string
	allowed []string
}

// OneOf returns a choice with a preset value.
func OneOf(preset string, others ...string) Choice {
	return Choice{preset, append([]string{preset}, others...)}
}

func (c *Choice) String() string { return c.value }

// Type is shown in the help as the flag's value.
func (c *Choice) Type() string { return strings.Join(c.allowed, "|") }

// Set takes one of the allowed values.
func (c *Choice) Set(value string) error {
	for _, allowed := range c.allowed {
		if value == allowed {
			c.value = value
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
}

// JSONFlag adds --output to a command that always prints JSON: scripts give it to every
// command.
func JSONFlag(cmd *cobra.Command) {
	only := OneOf("json") // the choice of other commands stays theirs
	cmd.Flags().VarP(&only, "output", "o", "one JSON object per line")
	CompleteChoice(cmd, "output", only)
}

// OutputFlag adds --output.
func (a *App) OutputFlag(cmd *cobra.Command) {
	a.output = OneOf("table", "json")
	cmd.Flags().VarP(&a.output, "output", "o", "a table, or one JSON object per line")
	CompleteChoice(cmd, "output", a.output)
}

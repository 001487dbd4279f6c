package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag with a few allowed values.
type choice struct {
	value   string
	allowed []string
}

func oneOf(preset string, others ...string) choice {
	return choice{preset, append([]string{preset}, others...)}
}

func (c *choice) String() string { return c.value }

// Type is shown in the help as the flag's value.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set takes one of the allowed values.
func (c *choice) Set(value string) error {
	for _, allowed := range c.allowed {
		if value == allowed {
			c.value = value
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
}

// outputFlag adds --output.
func (a *app) outputFlag(cmd *cobra.Command) {
	a.output = oneOf("table", "json")
	cmd.Flags().VarP(&a.output, "output", "o", "a table, or one JSON object per line")
	completeChoice(cmd, "output", a.output)
}

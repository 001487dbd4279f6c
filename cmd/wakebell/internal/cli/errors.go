package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is an error in how the command was called.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// Usagef returns an error with exit code 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// notFoundError is the error of a command whose object does not exist.
type notFoundError struct{ text string }

func (e notFoundError) Error() string { return e.text }

// NotFoundf returns an error with exit code 3.
func NotFoundf(format string, args ...any) error { return notFoundError{fmt.Sprintf(format, args...)} }

// MissingCommand is the RunE of a command that only has subcommands.
func MissingCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return Usagef("a command is required")
}

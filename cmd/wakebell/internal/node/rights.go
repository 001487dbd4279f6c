package node

import (
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// RightsCommand returns the command rights.
func RightsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rights",
		Short:   "Check a rights file of node --rights",
		Long:    `A rights file says what each peer of a node may do.`,
		Example: "  wakebell rights check --file rights billing schedule topic:invoices.eu",
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.MissingCommand,
	}
	cmd.AddCommand(rightsCheckCommand(a))
	return cmd
}

package main

import (
	"github.com/spf13/cobra"
)

func rightsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rights",
		Short:   "Check a rights file of node --rights",
		Long:    `A rights file says what each peer of a node may do.`,
		Example: "  wakebell rights check --file rights billing schedule topic:invoices.eu",
		Args:    cobra.ArbitraryArgs,
		RunE:    missingCommand,
	}
	cmd.AddCommand(rightsCheckCommand(a))
	return cmd
}

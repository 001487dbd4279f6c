package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/remote"
)

// rightsLimit bounds the size of a file of rights, in bytes.
const rightsLimit = 4 << 20

// readRights reads a file of rights.
func readRights(flag, file string) (*remote.Rights, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if info.Size() > rightsLimit {
		return nil, fmt.Errorf("%s: %s has %d bytes, more than %d", flag, file, info.Size(), rightsLimit)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	rights, err := remote.ParseRights(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, file, err)
	}
	return rights, nil
}

func (a *app) rightsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rights",
		Short:   "Check a file of rights of node --rights",
		Long:    `Files of rights say which peer of a node may do what.`,
		Example: "  wakebell rights check --file rights billing schedule topic:invoices.eu",
		Args:    cobra.ArbitraryArgs,
		RunE:    missingCommand,
	}
	cmd.AddCommand(a.rightsCheckCommand())
	return cmd
}

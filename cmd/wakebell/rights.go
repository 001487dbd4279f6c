package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/remote/rights"
)

// rightsLimit bounds the size of a rights file, in bytes.
const rightsLimit = 4 << 20

// readRights reads a rights file.
func readRights(flag, file string) (*rights.Grants, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if info.Size() > rightsLimit {
		return nil, fmt.Errorf("%s: %s has %d bytes, want at most %d", flag, file, info.Size(), rightsLimit)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	rights, err := rights.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, file, err)
	}
	return rights, nil
}

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

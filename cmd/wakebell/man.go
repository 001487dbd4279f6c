package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// manCommand returns the command man, for packages of distributions.
func manCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write man pages for all commands",
		Long: `Writes a man page for each command into an existing directory, such as
/usr/local/share/man/man1.`,
		Example: "  wakebell man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
	}
	cmd.RunE = a.Does(func(_ context.Context, args []string) error {
		if info, err := os.Stat(args[0]); err != nil {
			return err
		} else if !info.IsDir() {
			return cli.Usagef("%s is not a directory", args[0])
		}
		root := newRoot(&cli.App{})
		root.DisableAutoGenTag = true
		header := &doc.GenManHeader{Section: "1", Source: "wakebell", Manual: "Wakebell", Date: &time.Time{}}
		if err := doc.GenManTree(root, header, args[0]); err != nil {
			return fmt.Errorf("write man pages: %w", err)
		}
		return nil
	})
	return cmd
}

package node

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/config"
)

// ConfigCommand returns the command config.
func ConfigCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, print and describe configuration files of node --config",
		Long:  `A configuration file has the values of the flags of node, and topics and queues.`,
		Example: `  wakebell config print > wakebell.yaml
  wakebell config check wakebell.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.MissingCommand,
	}
	cmd.AddCommand(configCheckCommand(a), configPrintCommand(a), configSchemaCommand(a))
	return cmd
}

func configCheckCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file",
		Long: `Checks a configuration file and prints every error with its line: unknown fields,
values that a flag does not take, values out of bounds, and flags that do not go
together. It reads no other file and does not connect to Redis. Exit codes: 0 the
file is valid, 2 it is not.`,
		Example: "  wakebell config check wakebell.yaml",
		Args:    cobra.ExactArgs(1),
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	cmd.RunE = a.Does(func(_ context.Context, args []string) error {
		f, flags, err := load(args[0], nil)
		if err != nil {
			return err
		}
		// What a node refuses at its start as well.
		if err := f.combined(flags.Lookup("tls-cert").Value.String(), flags.Lookup("tls-key").Value.String()); err != nil {
			return cli.Usagef("%s: %v", args[0], err)
		}
		if err := f.dash.combined(); err != nil {
			return cli.Usagef("%s: %v", args[0], err)
		}
		if _, err := newPosting(f.perHost, nil); err != nil {
			return cli.Usagef("%s: %v", args[0], err)
		}
		return a.Printf("%s is valid: %d topics, %d queues\n", args[0], len(f.topics), len(f.queues))
	})
	return cmd
}

func configPrintCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print [FILE]",
		Short: "Print a configuration file with all fields",
		Long: `Prints a configuration file with all fields and what they mean; those that have their
defaults are comments. Without FILE all have. Of Redis's URL it hides the password.`,
		Example: `  wakebell config print > wakebell.yaml
  wakebell config print wakebell.yaml`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	cmd.RunE = a.Does(func(_ context.Context, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		f, flags, err := load(name, nil)
		if err != nil {
			return err
		}
		text := config.Format(flags)
		for i, title := range []string{"topics", "queues"} {
			sections := ""
			for _, h := range f.handled {
				if h.queue == (i == 1) {
					sections += config.FormatSection(h.name, h.own())
				}
			}
			if sections == "" {
				sections = "  {}\n"
			}
			text += title + ":\n" + sections
		}
		return a.Printf("%s", text)
	})
	return cmd
}

func configSchemaCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of configuration files",
		Long: `Prints the JSON schema of configuration files, with which editors complete fields and
mark unknown ones. In the file, name it on the first line:

  # yaml-language-server: $schema=wakebell.schema.json`,
		Example: "  wakebell config schema > wakebell.schema.json",
		Args:    cobra.NoArgs,
	}
	cmd.RunE = a.Does(func(context.Context, []string) error {
		_, flags, err := load("", nil)
		if err != nil {
			return err
		}
		text, err := config.Schema(flags, newHandled("", false).flags, newHandled("", true).flags)
		if err != nil {
			return err
		}
		return a.Printf("%s", text)
	})
	return cmd
}

package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// verdict is the JSON line of rights check.
type verdict struct {
	Principal string `json:"principal"`
	Action    string `json:"action"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Allowed   bool   `json:"allowed"`
	Line      int    `json:"line,omitempty"` // of the file that allows it
}

func rightsCheckCommand(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check --file FILE [PRINCIPAL ACTION NAME]",
		Short: "Check a rights file, or whether it allows an action",
		Long: `Checks a rights file and prints each wrong line. With arguments it prints whether a
principal may execute an action:
  PRINCIPAL  the owner of a token, or the common name of a certificate
  ACTION     schedule, handle, read or operate
  NAME       topic:NAME, queue:NAME, gate:NAME or schedule:NAME

With -o json: principal, action, kind, name, allowed, and the line that allows it.

Exit codes: 0 the file is valid, or allows it; 1 it does not allow it; 2 the file or
an argument is wrong.

A line of the file is a grant: a principal, comma-separated actions, and patterns of
names. In a pattern * stands for any text and ? for one character. Everything else is
denied.
  billing  schedule,read  topic:invoices.* topic:refunds
  billing  handle         queue:mail
  ops      *              *`,
		Example: `  wakebell rights check --file rights
  wakebell rights check --file rights billing schedule topic:invoices.eu`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return cli.Usagef("%d arguments, want a principal, an action and a name, or none", len(args))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "rights `file`")
	a.OutputFlag(cmd)
	cli.CompleteFiles(cmd, "file")
	_ = cmd.MarkFlagRequired("file") // the flag is there, so this cannot fail
	cmd.RunE = a.Does(func(_ context.Context, args []string) error { return checkRights(a, file, args) })
	return cmd
}

func checkRights(a *cli.App, file string, args []string) error {
	rights, err := readRights("--file", file)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if a.WantsJSON() {
			return a.PrintJSON(map[string]int{"patterns": rights.Len()})
		}
		return a.Printf("%d patterns\n", rights.Len())
	}
	kind, name, _ := strings.Cut(args[2], ":")
	v := verdict{Principal: args[0], Action: args[1], Kind: kind, Name: name}
	v.Line, v.Allowed, err = rights.Check(args[0], args[1], args[2])
	if err != nil {
		return err
	}
	if a.WantsJSON() {
		err = a.PrintJSON(v)
	} else if v.Allowed {
		err = a.Printf("allowed by line %d\n", v.Line)
	}
	if err == nil && !v.Allowed {
		err = fmt.Errorf("%q may not %s %s", v.Principal, v.Action, args[2])
	}
	return err
}

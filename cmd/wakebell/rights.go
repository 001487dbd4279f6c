package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

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

// rightsFlag is the file of rights of a listener.
type rightsFlag struct {
	file string
	read fileStamp // of it
}

// take reads the file, if there is one.
func (f *rightsFlag) take(cfg *remote.Config) (err error) {
	if f.file == "" {
		return nil
	}
	f.read = stampOf(f.file) // before: what is written meanwhile is read again
	cfg.Rights, err = readRights("--rights", f.file)
	return err
}

// follow has the listener take the rights that are in the file, until ctx ends.
func (f *rightsFlag) follow(ctx context.Context, server *remote.Server, log *slog.Logger) {
	tick := time.NewTicker(tokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stampOf(f.file)
		if now == f.read {
			continue
		}
		f.read = now
		rights, err := readRights("--rights", f.file)
		if err == nil {
			err = server.SetRights(rights)
		}
		if err != nil {
			log.Warn("changed rights cannot be used; those before stay in force", "err", err)
			continue
		}
		log.Info("rights were read again", "patterns", rights.Len())
	}
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

// verdict is what rights check prints.
type verdict struct {
	Principal string `json:"principal"`
	Action    string `json:"action"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Allowed   bool   `json:"allowed"`
	Line      int    `json:"line,omitempty"` // that allows it
}

func (a *app) rightsCheckCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check --file FILE [PRINCIPAL ACTION NAME]",
		Short: "Check a file of rights, or whether it allows something",
		Long: `Checks a file of rights, and names each line that is wrong. With arguments it tells
whether a principal may do something:
  PRINCIPAL  the owner of a token, or the common name of a certificate
  ACTION     schedule, handle, read or operate
  NAME       topic:NAME, queue:NAME, gate:NAME or schedule:NAME

With -o json: principal, action, kind, name, allowed, and the line that allows it.

Exit codes: 0 the file is right, or allows it; 1 it does not allow it; 2 the file or an
argument is wrong.

A line of the file grants: a principal, actions with commas between them, and what
they are on. In a pattern * stands for any text and ? for one character. What no line
grants is denied.
  billing  schedule,read  topic:invoices.* topic:refunds
  billing  handle         queue:mail
  ops      *              *`,
		Example: `  wakebell rights check --file rights
  wakebell rights check --file rights billing schedule topic:invoices.eu`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return usagef("%d arguments, want a principal, an action and a name, or none", len(args))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "`file` of rights")
	a.outputFlag(cmd)
	completeFiles(cmd, "file")
	_ = cmd.MarkFlagRequired("file") // the flag is there, so this cannot fail
	cmd.RunE = a.does(func(_ context.Context, args []string) error { return a.checkRights(file, args) })
	return cmd
}

func (a *app) checkRights(file string, args []string) error {
	rights, err := readRights("--file", file)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if a.wantsJSON() {
			return a.printJSON(map[string]int{"patterns": rights.Len()})
		}
		return a.printf("%d patterns\n", rights.Len())
	}
	kind, name, _ := strings.Cut(args[2], ":")
	v := verdict{Principal: args[0], Action: args[1], Kind: kind, Name: name}
	v.Line, v.Allowed, err = rights.Check(args[0], args[1], args[2])
	if err != nil {
		return err
	}
	if a.wantsJSON() {
		err = a.printJSON(v)
	} else if v.Allowed {
		err = a.printf("allowed by line %d\n", v.Line)
	}
	if err == nil && !v.Allowed {
		err = fmt.Errorf("%q may not %s %s", v.Principal, v.Action, args[2])
	}
	return err
}

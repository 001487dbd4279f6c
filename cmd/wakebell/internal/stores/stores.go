// Package stores has the commands for directories of embedded stores.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/embedded/durable"
	"github.com/wakebell/wakebell/internal/journal"
)

// Command returns the command embedded.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "embedded",
		Short: "Check and save the directory of an embedded store",
		Long: `Looks at a directory that --redis embedded:DIR has written, while no process uses it:
check says whether all of it can be read, and export saves what can.`,
		Example: `  wakebell embedded check /var/lib/wakebell
  wakebell embedded export /var/lib/wakebell --to /var/lib/wakebell-saved`,
		Args: cli.NoArgs,
	}
	cmd.AddCommand(checkCommand(a), exportCommand(a))
	return cmd
}

// checked is the line of check.
type checked struct {
	Directory string   `json:"directory"`
	Files     []string `json:"files"`
	Bytes     int64    `json:"bytes"`
	Records   uint64   `json:"records"`
	Last      string   `json:"last"`
	Torn      *place   `json:"torn"`
	Damage    []place  `json:"damage"`
}

type place struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

var errDamaged = errors.New("the embedded store is damaged; wakebell embedded export saves the rest")

func checkCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check the files of an embedded store",
		Long: `Reads all files of a directory that no process uses, and changes nothing. It fails
if something is damaged. A torn end, which the next start cuts off, is no damage: none
of it was acknowledged with sync=always.

With -o json: directory, files, bytes, records, last (when the last record was written),
torn and damage: file, offset in bytes and reason.`,
		Example: `  wakebell embedded check /var/lib/wakebell`,
		Args:    cobra.ExactArgs(1),
	}
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(_ context.Context, args []string) error {
		found, damage, err := durable.Check(args[0])
		if err != nil {
			return err
		}
		return report(a, args[0], found, damage)
	})
	return cmd
}

func report(a *cli.App, dir string, found journal.Found, damage []*journal.DamageError) error {
	line := checked{Directory: dir, Files: append([]string{}, found.Files...), Bytes: found.Bytes, Records: found.Records, Damage: []place{}}
	if found.Clock > 0 {
		line.Last = output.Stamp(time.UnixMilli(found.Clock))
	}
	if cut := found.Cut; cut != nil {
		line.Torn = &place{cut.File, cut.Offset, cut.Err.Error()}
	}
	for _, d := range damage {
		line.Damage = append(line.Damage, place{d.File, d.Offset, d.Err.Error()})
	}
	var err error
	if a.WantsJSON() {
		err = a.PrintJSON(line)
	} else {
		rows := [][2]string{
			{"directory", dir},
			{"files", strconv.Itoa(len(line.Files))},
			{"bytes", strconv.FormatInt(line.Bytes, 10)},
			{"records", strconv.FormatUint(line.Records, 10)},
			{"last", line.Last},
		}
		if line.Torn != nil {
			rows = append(rows, [2]string{"torn", line.Torn.String()})
		}
		for _, d := range line.Damage {
			rows = append(rows, [2]string{"damage", d.String()})
		}
		err = a.PrintRows(rows)
	}
	if err == nil && len(damage) > 0 {
		return errDamaged
	}
	return err
}

func (p place) String() string { return fmt.Sprintf("%s at byte %d: %s", p.File, p.Offset, p.Reason) }

func exportCommand(a *cli.App) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export DIR [--to DIR]",
		Short: "Save what can be read of an embedded store",
		Long: `Reads a directory that no process uses, also if it is damaged, and writes what can be
read to stdout: commands of Redis, which redis-cli --pipe sends to an empty Redis. With
--to it writes another directory instead, which is a store again. What is lost is named
on stderr. Commands behind damage are applied to what was read before it.`,
		Example: `  wakebell embedded export /var/lib/wakebell | redis-cli --pipe
  wakebell embedded export /var/lib/wakebell --to /var/lib/wakebell-saved`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&to, "to", "", "empty `directory` to write a store to")
	cmd.RunE = a.Does(func(_ context.Context, args []string) error {
		damage, err := export(args[0], to, a.Stdout)
		for _, d := range damage {
			a.Notef("wakebell: lost: %v\n", d)
		}
		return err
	})
	return cmd
}

func export(dir, to string, out io.Writer) ([]*journal.DamageError, error) {
	if to != "" {
		return durable.Copy(dir, to)
	}
	return durable.Export(dir, out)
}

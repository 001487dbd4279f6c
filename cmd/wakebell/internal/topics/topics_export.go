package topics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsExportCommand(a *cli.App) *cobra.Command {
	var file string
	var all, resumes bool
	cmd := &cobra.Command{
		Use:   "export (TOPIC | --all --out DIRECTORY)",
		Short: "Write a topic, or all topics, to files for import",
		Long: `Writes all of a topic as JSON lines, to stdout or with --out to a file: the number of
shards, pause and overrides, timers with their payloads as they are stored, dead
letters, and marks of Once; no leases, counts and history. Nodes and clients may use the
topic meanwhile. A timer that exists throughout is written once.

The first line says what the file is; the last has counts, so import recognises a file
that was cut off. With --out the file appears when it is complete. It is readable for
its owner only, because it has the payloads. On a terminal it shows how many timers are
written, and the time left. It needs Redis itself, not a node.

With --all it writes a file for each listed topic into the directory --out, which must
be new or empty. With --continue it keeps the files that are there, so an export that
was interrupted goes on. Queues, gates and recurring schedules are not written.`,
		Example: `  wakebell topics export invoices > invoices.jsonl
  wakebell topics export invoices --out /backup/invoices.jsonl
  wakebell topics export --all --out /backup/today`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !all:
				return cobra.ExactArgs(1)(cmd, args)
			case file == "":
				return cli.Usagef("--all: name a directory with --out")
			}
			return cobra.NoArgs(cmd, args)
		},
	}
	cmd.Flags().StringVar(&file, "out", "", "`file` to write, or directory with --all; default stdout")
	cmd.Flags().BoolVar(&all, "all", false, "write all topics, each to a file")
	cmd.Flags().BoolVar(&resumes, "continue", false, "with --all: keep the files that the directory has")
	cli.CompleteFiles(cmd, "out")
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.WithClient(func(c *wakebell.Client) error {
			if all {
				return exportAll(ctx, a, c, file, resumes)
			}
			a.WarnUnused(ctx, c, args[0])
			if file == "" {
				return export(ctx, a, c, args[0], stdoutOf(a))
			}
			return toFile(file, func(w io.Writer) error { return export(ctx, a, c, args[0], w) })
		})
	})
	return cmd
}

// stdoutOf returns stdout as a writer that makes room for its lines on the terminal.
func stdoutOf(a *cli.App) io.Writer {
	return writerFunc(func(text []byte) error { return a.Write(text) })
}

type writerFunc func([]byte) error

func (f writerFunc) Write(text []byte) (int, error) {
	if err := f(text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// toFile writes a file that appears when it is complete.
func toFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func export(ctx context.Context, a *cli.App, c *wakebell.Client, topic string, w io.Writer) error {
	began := time.Now()
	var progress *output.Progress
	first := true
	var last wakebelltype.Exported
	for e, err := range c.ExportTopic(ctx, topic, w) {
		if last = e; err != nil {
			return cli.SoFar(err, e.Timers, "timers were written; the export is not complete")
		}
		if first {
			first, progress = false, a.Progress("export", e.Total)
		}
		progress.Set(e.Timers + e.Dead)
	}
	a.Summaryf("exported %d timers, %d dead letters and %d marks in %v", last.Timers, last.Dead, last.Marks, output.Took(began))
	return nil
}

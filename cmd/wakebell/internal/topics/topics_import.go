package topics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsImportCommand(a *cli.App) *cobra.Command {
	var o wakebelltype.ImportOptions
	var fromFile string
	cmd := &cobra.Command{
		Use:   "import [FILE | DIRECTORY]",
		Short: "Store what topics export wrote",
		Long: `Reads what topics export wrote, from FILE or stdin, and stores the timers, dead letters
and marks of Once. A timer is due at its instant, or at its next attempt if it had
failed; one that was leased is due again. A timer whose id exists stays as it is, or is
replaced with --replace. A topic without timers gets the number of shards of the
exported one, and one without a pause and overrides gets those.

Every line is checked before it is stored. The first that is wrong ends the import with
its number, the field and its bound; all lines before it are stored. If the file was cut
off, all lines that it has are stored. The exit code is 2 in both cases.

It may be repeated, and interrupted. But a timer that was imported and is handled
before the repetition is stored again. To continue an import that was interrupted
without that, give --from-line the line that it printed. It needs Redis itself, not a
node.

A DIRECTORY is one that export --all wrote: all of its files are imported, in the order
of their names. To continue, give --from-file as well: those before it are skipped.

With -o json a line at the end, of each file: topic, line (all lines up to it are stored), stored,
replaced, existed (left alone), unusable (timers that no node can handle, left out),
dead (dead letters), marks, total (timers and dead letters that the file announces) and
done.`,
		Example: `  wakebell topics import invoices.jsonl --dry-run
  wakebell topics import --topic invoices-copy < invoices.jsonl`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Topic, "topic", "t", "", "`topic` to import to; default the one in the file")
	flags.BoolVar(&o.Replace, "replace", false, "replace timers that exist, also while a handler has them")
	flags.BoolVar(&o.DryRun, "dry-run", false, "check all lines and count; change nothing")
	flags.Int64Var(&o.FromLine, "from-line", 0, "`number` of the first line to import")
	flags.StringVar(&fromFile, "from-file", "", "`name` of the first file of a directory to import")
	cli.CompleteFiles(cmd, "from-file")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		if cmd.Flags().Changed("topic") && o.Topic == "" {
			return cli.Usagef("--topic: empty")
		}
		in := a.Stdin
		if len(args) > 0 {
			if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
				return importAll(ctx, a, args[0], fromFile, o)
			}
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("read the export: %w", err)
			}
			defer func() { _ = f.Close() }() // it was only read
			in = f
		}
		lines := interruptible(ctx, in)
		defer func() { _ = lines.Close() }() // always nil
		return a.WithClient(func(c *wakebell.Client) error { return importTopic(ctx, a, c, lines, o) })
	})
	return cmd
}

// interruptible returns a reader that ends with ctx, also while a read of in waits, as at
// a terminal. That read ends with the process.
func interruptible(ctx context.Context, in io.Reader) io.ReadCloser {
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) }) // always nil
	go func() {
		_, err := io.Copy(w, in)
		stop()
		_ = w.CloseWithError(err) // always nil
	}()
	return r
}

type importedLine wakebelltype.Imported

func importTopic(ctx context.Context, a *cli.App, c *wakebell.Client, in io.Reader, o wakebelltype.ImportOptions) error {
	began := time.Now()
	var progress *output.Progress
	var last wakebelltype.Imported
	var fault error
	first := true
	for i, err := range c.ImportTopic(ctx, in, o) {
		last, fault = i, err
		if first {
			first, progress = false, a.Progress("import", i.Total)
		}
		progress.Set(i.Stored + i.Replaced + i.Existed + i.Unusable + i.Dead)
	}
	progress.End()
	last.Topic = a.Prefix + last.Topic
	if last.Line == 0 { // not even the first
		return fault
	}
	err := printImported(a, last, o)
	if fault != nil && !last.Done && !o.DryRun {
		a.Notef("wakebell: lines up to %d are stored; to continue, add --from-line %d\n", last.Line, last.Line+1)
	}
	if err = errors.Join(fault, err); err == nil {
		a.Summaryf("took %v", output.Took(began))
	}
	return err
}

func printImported(a *cli.App, i wakebelltype.Imported, o wakebelltype.ImportOptions) error {
	if a.WantsJSON() {
		return a.PrintJSON(importedLine(i))
	}
	stored := "stored"
	if o.DryRun {
		stored = "to store"
	}
	rows := [][2]string{{"topic", i.Topic}}
	add := func(name string, n int64, always bool) {
		if n > 0 || always {
			rows = append(rows, [2]string{name, strconv.FormatInt(n, 10)})
		}
	}
	add(stored, i.Stored, true)
	add("replaced", i.Replaced, o.Replace)
	add("existed", i.Existed, !o.Replace)
	add("unusable", i.Unusable, false)
	add("dead letters", i.Dead, true)
	add("marks", i.Marks, false)
	return a.PrintRows(rows)
}

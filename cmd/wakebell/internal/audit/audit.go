// Package audit has the command audit.
package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// followEvery is the delay between the reads of --follow.
const followEvery = time.Second

type flags struct {
	filter wakebelltype.AuditFilter
	since  time.Duration
	after  string
	follow bool
}

// Command returns the command audit.
func Command(a *cli.App) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "audit [-f]",
		Short: "Show who changed what: pauses, redrives, purges and the like",
		Long: `Shows the last recorded operations, the newest last: pause, resume, retune,
cancel --all, dead redrive, dead rm, the removal of topics, queue purge and dead
letters of queues, gate release, repair and rm, and changes and runs of recurring
schedules, of all processes on this Redis; and what the commands cancel, reschedule
and run-now and the dashboard changed, one entry for a command. What programs
schedule and cancel is not recorded. Filters can be combined. With -f it continues
with the operations that follow, until it is stopped.

Redis keeps about the last 10,000 entries. An entry is written after its
operation; if that fails, the operation succeeds nevertheless, and doctor names a
missing right. Redrives and deletions of a caller within a minute are one entry,
which begins at since; with -f it appears again as it grows.

With -o json each is a line with at, since, operation, name, count, by, via, from,
detail, error and cursor. Via says how the caller is known: process (by the Go API
or this program, with access to Redis), token or certificate (by a node), or
network (a node without credentials).`,
		Example: `  wakebell audit
  wakebell audit -f --lines 0
  wakebell audit --operation topic.pause --name invoices --since 24h -o json`,
		Args: cli.NoArgs,
	}
	set := cmd.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "continue with operations as they happen")
	set.IntVarP(&f.filter.Last, "lines", "n", 50, "entries to show first, up to 1,000")
	set.StringVar(&f.after, "after", "", "show all entries behind this `cursor` instead of the last")
	set.StringVar((*string)(&f.filter.Operation), "operation", "", "only this `operation`, such as topic.pause, or this kind, such as topic")
	set.StringVar(&f.filter.Name, "name", "", "only those on the topic, queue, gate or recurring schedule of this `name`")
	set.StringVar(&f.filter.By, "by", "", "only those of this `caller`")
	cli.DurationVar(set, &f.since, "since", 0, "only those of this `duration` until now; 0: all")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return show(ctx, a, c, f) })
	})
	return cmd
}

func show(ctx context.Context, a *cli.App, c wakebell.Operator, f *flags) error {
	switch {
	case f.filter.Last < 0 || f.filter.Last > 1000:
		return cli.Usagef("--lines: %d is not within 0 and 1000", f.filter.Last)
	case f.since < 0:
		return cli.Usagef("--since: %v, want at least 0", f.since)
	case f.since > 0:
		f.filter.Since = time.Now().Add(-f.since)
	}
	cursor, err := showFirst(ctx, a, c, f)
	if err != nil || !f.follow {
		return err
	}
	f.filter.Last = 0
	said := false
	for {
		select {
		case <-ctx.Done():
			return nil // a signal
		case <-time.After(followEvery):
		}
		at, err := showAfter(ctx, a, c, f.filter, cursor)
		cursor = at
		switch {
		case err == nil:
			said = false
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			return nil
		case !errors.Is(err, wakebell.ErrUnavailable):
			return err
		case !said:
			said = true
			a.Notef("wakebell: %s; trying again\n", output.Escape(err.Error()))
		}
	}
}

// showFirst prints the entries before those that --follow waits for, and returns the
// cursor of the newest.
func showFirst(ctx context.Context, a *cli.App, c wakebell.Operator, f *flags) (cursor string, err error) {
	if f.after != "" {
		f.filter.Last = 0
		return showAfter(ctx, a, c, f.filter, f.after)
	}
	for e, err := range c.Audit(ctx, wakebelltype.AuditFilter{Last: 1}, wakebelltype.Page{}) {
		if err != nil {
			return "", err
		}
		cursor = e.Cursor
	}
	if f.filter.Last == 0 {
		return cursor, nil
	}
	newest, err := showAfter(ctx, a, c, f.filter, "")
	if newest == "" {
		newest = cursor // the filter selects none
	}
	return newest, err
}

// showAfter prints the entries behind a cursor, and returns that of the last.
func showAfter(ctx context.Context, a *cli.App, c wakebell.Operator, f wakebelltype.AuditFilter, cursor string) (string, error) {
	for e, err := range c.Audit(ctx, f, wakebelltype.Page{After: cursor}) {
		if err == nil {
			err = printEntry(a, e)
		}
		if err != nil {
			return cursor, err
		}
		cursor = e.Cursor
	}
	return cursor, nil
}

// line has the JSON fields of an entry.
type line struct {
	At        string `json:"at"`
	Since     string `json:"since"`
	Operation string `json:"operation"`
	Name      string `json:"name"`
	Count     int64  `json:"count"`
	By        string `json:"by"`
	Via       string `json:"via"`
	From      string `json:"from"`
	Detail    string `json:"detail"`
	Error     string `json:"error"`
	Cursor    string `json:"cursor"`
}

func printEntry(a *cli.App, e wakebelltype.AuditEntry) error {
	if !a.WantsJSON() {
		return a.Printf("%s\n", text(e))
	}
	return a.PrintJSON(line{
		output.Stamp(e.At), output.Stamp(e.Since), string(e.Operation), e.Name, e.Count, e.By, string(e.Via), e.From, e.Detail, e.Error, e.Cursor,
	})
}

// text formats an entry for people.
func text(e wakebelltype.AuditEntry) string {
	by := e.By
	if by == "" {
		by = "unknown"
	}
	words := fmt.Sprintf("%s  %-17s  %s  %d, by %s (%s, %s)", e.At.UTC().Format("2006-01-02T15:04:05.000Z"), e.Operation, e.Name, e.Count, by, e.Via, e.From)
	var more []string
	if e.Detail != "" {
		more = append(more, e.Detail)
	}
	if e.Error != "" {
		more = append(more, "error: "+e.Error)
	}
	if len(more) > 0 {
		words += ": " + strings.Join(more, "; ")
	}
	return output.Escape(words)
}

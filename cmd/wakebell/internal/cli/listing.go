package cli

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// Listing prints items as they arrive, as a table or as lines of JSON.
type Listing struct {
	app   *App
	table *output.Table // nil: JSON
	limit int           // 0: none
	shown int
	more  bool
	last  string // cursor of the last item that is shown

	progress *output.Progress // where the items are not shown on a terminal
}

// NewListing returns a listing with its columns. A limit of 0 is none.
func (a *App) NewListing(limit int, columns ...output.Column) *Listing {
	l := &Listing{app: a, limit: limit}
	if limit == 0 && !output.IsTerminal(a.Stdout) {
		l.progress = a.Progress("list", 0)
	}
	if !a.WantsJSON() {
		l.table = output.NewTable(tableWriter{a}, a.Screen(), columns...)
	}
	return l
}

// FirstColumn makes the first column of a table wide enough for values.
func (l *Listing) FirstColumn(values []string) {
	if l.table != nil {
		l.table.AtLeast(values)
	}
}

// full records that there is another item, and reports whether it exceeds the limit.
func (l *Listing) full() bool {
	l.more = l.limit > 0 && l.shown == l.limit
	return l.more
}

// CutAfter records that there are more items, and the cursor of the last that is
// shown.
func (l *Listing) CutAfter(cursor string) { l.more, l.last = true, cursor }

// Add prints an item: value as JSON, or the cells as a row.
func (l *Listing) Add(value any, cells ...string) error {
	l.shown++
	l.progress.Add(1)
	if l.table == nil {
		return l.app.PrintJSON(value)
	}
	l.table.Row(cells...)
	return l.table.Err()
}

// RequireShown returns the error of check if nothing is listed: what is named may not be
// there.
func (l *Listing) RequireShown(check func() error) error {
	if l.shown > 0 {
		return nil
	}
	return check()
}

// End prints the rest, and a note on stderr if there are more items than the limit.
func (l *Listing) End() error {
	if l.more {
		l.app.Notef("wakebell: there are more than %d; --after %s continues, --limit 0 shows all\n", l.limit, output.Escape(quoted(l.last)))
	}
	if l.table == nil {
		return nil
	}
	return l.table.Flush()
}

// stopped prints the rest before an error, and adds to the error where to continue.
func (l *Listing) stopped(err error) error {
	if l.shown == 0 {
		return err
	}
	if l.table != nil {
		if flushed := l.table.Flush(); flushed != nil {
			return errors.Join(err, flushed)
		}
	}
	return After(fmt.Sprintf("%d listed; --after %s continues", l.shown, quoted(l.last)), err)
}

// quoted returns a cursor, which may be a name that others gave, as one word of a shell.
func quoted(cursor string) string { return "'" + strings.ReplaceAll(cursor, "'", `'\''`) + "'" }

// PrintAll prints the items of a listing up to its limit; cursor returns that of an
// item, and row its JSON value and its cells.
func PrintAll[T any](l *Listing, items iter.Seq2[T, error], cursor func(T) string, row func(T) (value any, cells []string)) error {
	for item, err := range items {
		if err != nil {
			return l.stopped(err)
		}
		if l.full() {
			break
		}
		l.last = cursor(item)
		value, cells := row(item)
		if err := l.Add(value, cells...); err != nil {
			return err
		}
	}
	return l.End()
}

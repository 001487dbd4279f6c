package cli

import (
	"iter"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// listing prints items as they arrive, as a table or as lines of JSON.
type listing struct {
	app   *App
	table *output.Table // nil: JSON
	limit int           // 0: none
	shown int
	More  bool
	Last  string // cursor of the last item that is shown
}

func (a *App) NewListing(limit int, head ...string) *listing {
	l := &listing{app: a, limit: limit}
	if !a.WantsJSON() {
		l.table = output.NewTable(a.Stdout, head...)
	}
	return l
}

// FirstColumn makes the first column of a table wide enough for values.
func (l *listing) FirstColumn(values []string) {
	if l.table != nil {
		l.table.AtLeast(values)
	}
}

// full records that there is another item, and reports whether it exceeds the limit.
func (l *listing) full() bool {
	l.More = l.limit > 0 && l.shown == l.limit
	return l.More
}

// Add prints an item: value as JSON, or the cells as a row.
func (l *listing) Add(value any, cells ...string) error {
	l.shown++
	if l.table == nil {
		return l.app.PrintJSON(value)
	}
	l.table.Row(cells...)
	return l.table.Err()
}

func (l *listing) End() error {
	if l.More {
		l.app.Notef("wakebell: there are more than %d; --after '%s' continues, --limit 0 shows all\n", l.limit, output.Escape(l.Last))
	}
	if l.table == nil {
		return nil
	}
	return l.table.Flush()
}

// PrintAll prints the items of a listing up to its limit; cursor returns that of an
// item, and row its JSON value and its cells.
func PrintAll[T any](l *listing, items iter.Seq2[T, error], cursor func(T) string, row func(T) (value any, cells []string)) error {
	for item, err := range items {
		if err != nil {
			return err
		}
		if l.full() {
			break
		}
		l.Last = cursor(item)
		value, cells := row(item)
		if err := l.Add(value, cells...); err != nil {
			return err
		}
	}
	return l.End()
}

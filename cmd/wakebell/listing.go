package main

import "iter"

// listing prints items as they arrive, as a table or as lines of JSON.
type listing struct {
	app   *app
	table *table // nil: JSON
	limit int    // 0: none
	shown int
	more  bool
	last  string // cursor of the last item that is shown
}

func (a *app) newListing(limit int, head ...string) *listing {
	l := &listing{app: a, limit: limit}
	if !a.wantsJSON() {
		l.table = newTable(a.stdout, head...)
	}
	return l
}

// firstColumn makes the first column of a table wide enough for values.
func (l *listing) firstColumn(values []string) {
	if l.table != nil {
		l.table.atLeast(values)
	}
}

// full records that there is another item, and reports whether it exceeds the limit.
func (l *listing) full() bool {
	l.more = l.limit > 0 && l.shown == l.limit
	return l.more
}

// add prints an item: value as JSON, or the cells as a row.
func (l *listing) add(value any, cells ...string) error {
	l.shown++
	if l.table == nil {
		return l.app.printJSON(value)
	}
	l.table.row(cells...)
	return l.table.err()
}

func (l *listing) end() error {
	if l.more {
		l.app.notef("wakebell: there are more than %d; --after '%s' continues, --limit 0 shows all\n", l.limit, escape(l.last))
	}
	if l.table == nil {
		return nil
	}
	return l.table.flush()
}

// printAll prints the items of a listing up to its limit; cursor returns that of an
// item, and row its JSON value and its cells.
func printAll[T any](l *listing, items iter.Seq2[T, error], cursor func(T) string, row func(T) (value any, cells []string)) error {
	for item, err := range items {
		if err != nil {
			return err
		}
		if l.full() {
			break
		}
		l.last = cursor(item)
		value, cells := row(item)
		if err := l.add(value, cells...); err != nil {
			return err
		}
	}
	return l.end()
}

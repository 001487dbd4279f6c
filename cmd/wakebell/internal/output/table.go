package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table prints aligned columns. It escapes all cells.
type Table struct {
	w      io.Writer
	held   [][]string
	widths []int // of the columns so far, which only grow
	fault  error
}

// heldRows is the number of rows that are buffered to align them, which bounds the
// memory of a listing without a limit. Columns only grow from one batch to the
// next, so later rows stay aligned.
const heldRows = 1000

// NewTable returns a table to w. Without a head it has no column names.
func NewTable(w io.Writer, head ...string) *Table {
	t := &Table{w: w}
	if len(head) > 0 {
		t.Row(head...)
	}
	return t
}

// AtLeast makes the first column wide enough for values that follow.
func (t *Table) AtLeast(values []string) {
	if len(t.widths) == 0 {
		t.widths = make([]int, 1)
	}
	for _, value := range values {
		t.widths[0] = max(t.widths[0], utf8.RuneCountInString(Escape(value)))
	}
}

// Row adds a row. An empty cell is printed as -.
func (t *Table) Row(cells ...string) {
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		if escaped[i] = Escape(cell); cell == "" {
			escaped[i] = "-"
		}
	}
	if t.held = append(t.held, escaped); len(t.held) == heldRows {
		t.emit()
	}
}

// emit writes the buffered rows.
func (t *Table) emit() {
	for _, cells := range t.held {
		for i, cell := range cells {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, cells := range t.held {
		for i, cell := range cells {
			out.WriteString(cell)
			if i < len(cells)-1 {
				out.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		out.WriteByte('\n')
	}
	t.held = t.held[:0]
	if _, err := io.WriteString(t.w, out.String()); t.fault == nil {
		t.fault = err
	}
}

// Err returns the error of the writes so far.
func (t *Table) Err() error { return t.fault }

// Flush writes the rows that are buffered, and returns the error of all writes.
func (t *Table) Flush() error {
	t.emit()
	if t.fault != nil {
		return fmt.Errorf("%w: %w", ErrStdout, t.fault)
	}
	return nil
}

package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Column is a column of a table. What it says about fitting applies to a terminal.
type Column struct {
	Name  string
	Long  bool                    // its cells are cut with … when the table is too wide
	Minor bool                    // it is left out when the table is too wide
	Rare  bool                    // it is left out when all its cells are empty
	Right bool                    // its cells are aligned to the right
	Style func(cell string) Style // of its cells; nil: plain
}

// Text returns a column of text, which can be cut.
func Text(name string) Column { return Column{Name: name, Long: true} }

// Short returns a column of short values, which are not cut.
func Short(name string) Column { return Column{Name: name} }

// Numeric returns a column of numbers.
func Numeric(name string) Column { return Column{Name: name, Right: true} }

// AsMinor returns the column as one that is left out when the table is too wide.
func (c Column) AsMinor() Column { c.Minor = true; return c }

// AsRare returns the column as one that is left out while all its cells are empty.
func (c Column) AsRare() Column { c.Rare = true; return c }

// Styled returns the column with the style of cells that are not empty.
func (c Column) Styled(style Style) Column {
	return c.StyledBy(func(string) Style { return style })
}

// StyledBy returns the column with a function that returns the style of a cell that
// is not empty.
func (c Column) StyledBy(style func(cell string) Style) Column { c.Style = style; return c }

// Table prints aligned columns. It escapes all cells.
type Table struct {
	w       io.Writer
	screen  Screen
	columns []Column
	headed  bool // the names of the columns are printed
	held    [][]string
	widths  []int    // of the columns so far, which only grow
	left    []bool   // columns that are not printed; nil: not determined yet
	missing []string // their names, if only for lack of width
	fault   error
}

// heldRows is the number of rows that are buffered to align them, which bounds the
// memory of a listing without a limit. Columns only grow from one batch to the
// next, so later rows stay aligned.
const heldRows = 1000

// NewTable returns a table to w. If no column has a name, it has no head.
func NewTable(w io.Writer, screen Screen, columns ...Column) *Table {
	t := &Table{w: w, screen: screen, columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		t.widths[i] = ansi.StringWidth(c.Name)
		t.headed = t.headed || c.Name == ""
	}
	return t
}

// AtLeast makes the first column wide enough for values that follow.
func (t *Table) AtLeast(values []string) {
	for _, value := range values {
		t.widths[0] = max(t.widths[0], ansi.StringWidth(Escape(value)))
	}
}

// Row adds a row. An empty cell is printed as -.
func (t *Table) Row(cells ...string) {
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = Escape(cell)
	}
	if t.held = append(t.held, escaped); len(t.held) == heldRows {
		t.emit(false)
	}
}

// emit writes the buffered rows; last reports that none follow.
func (t *Table) emit(last bool) {
	for _, cells := range t.held {
		for i, cell := range cells {
			t.widths[i] = max(t.widths[i], ansi.StringWidth(cell), 1)
		}
	}
	if t.left == nil {
		t.leaveOut(last)
	}
	widths := t.fit()
	var out strings.Builder
	if !t.headed {
		t.headed = true
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.Name
		}
		t.line(&out, widths, names, func(int, string) Style { return Head })
	}
	for _, cells := range t.held {
		t.line(&out, widths, cells, t.styleOf)
	}
	t.held = t.held[:0]
	if last {
		t.note(&out)
	}
	if _, err := io.WriteString(t.w, out.String()); t.fault == nil {
		t.fault = err
	}
}

func (t *Table) styleOf(column int, cell string) Style {
	switch style := t.columns[column].Style; {
	case cell == "":
		return Faint
	case style == nil:
		return Plain
	default:
		return style(cell)
	}
}

// line writes the cells of one line.
func (t *Table) line(out *strings.Builder, widths []int, cells []string, styleOf func(int, string) Style) {
	last := len(cells) - 1
	for last > 0 && t.left[last] {
		last--
	}
	for i, cell := range cells[:last+1] {
		if t.left[i] {
			continue
		}
		style := styleOf(i, cell)
		if cell == "" {
			cell = "-"
		}
		if t.screen.Columns > 0 {
			cell = ansi.Truncate(cell, widths[i], "…")
		}
		pad := strings.Repeat(" ", max(widths[i]-ansi.StringWidth(cell), 0))
		if right := t.columns[i].Right && t.screen.Columns > 0; right {
			out.WriteString(pad)
			pad = ""
		}
		out.WriteString(t.screen.Paint(style, cell))
		if i < last {
			out.WriteString(pad + gap)
		}
	}
	out.WriteByte('\n')
}

// gap separates columns.
const gap = "  "

// Err returns the error of the writes so far.
func (t *Table) Err() error { return t.fault }

// Flush writes the rows that are buffered, and returns the error of all writes.
func (t *Table) Flush() error {
	t.emit(true)
	if t.fault != nil {
		return fmt.Errorf("%w: %w", ErrStdout, t.fault)
	}
	return nil
}

// note names the columns that were left out because the terminal is too narrow.
func (t *Table) note(out *strings.Builder) {
	if len(t.missing) > 0 {
		text := t.screen.Cut("the terminal is too narrow for " + strings.Join(t.missing, ", "))
		out.WriteString(t.screen.Paint(Faint, text) + "\n")
	}
}

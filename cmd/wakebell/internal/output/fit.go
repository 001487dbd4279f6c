package output

import "slices"

const (
	// fairWidth is the width down to which text is cut before minor columns are left out.
	fairWidth = 20
	// leastWidth is the width down to which text is cut before other columns are.
	leastWidth = 8
)

// leaveOut determines the columns that are not printed; complete reports that all rows
// are buffered. A table for a program has all columns.
func (t *Table) leaveOut(complete bool) {
	t.left = make([]bool, len(t.columns))
	if t.screen.Columns == 0 {
		return
	}
	for i, c := range t.columns {
		t.left[i] = c.Rare && complete && t.isEmpty(i)
	}
	for _, text := range []int{fairWidth, leastWidth} {
		for i := len(t.left) - 1; i > 0 && t.least(text) > t.screen.Columns; i-- {
			if !t.left[i] && (t.columns[i].Minor || text == leastWidth) {
				t.left[i] = true
				t.missing = append([]string{t.columns[i].Name}, t.missing...)
			}
		}
	}
}

// isEmpty reports whether no buffered row has a value in a column.
func (t *Table) isEmpty(column int) bool {
	return !slices.ContainsFunc(t.held, func(cells []string) bool { return cells[column] != "" })
}

// least returns the width of the table when its text is cut to a width.
func (t *Table) least(text int) int {
	total := -len(gap)
	for i, c := range t.columns {
		if t.left[i] {
			continue
		}
		width := t.widths[i]
		if c.Long {
			width = min(width, text)
		}
		total += width + len(gap)
	}
	return total
}

// fit returns the widths with which the table fits the screen: the widest text is cut
// first.
func (t *Table) fit() []int {
	widths := slices.Clone(t.widths)
	if t.screen.Columns == 0 {
		return widths
	}
	excess := -len(gap) - t.screen.Columns
	for i, width := range widths {
		if !t.left[i] {
			excess += width + len(gap)
		}
	}
	for ; excess > 0; excess-- {
		widest := -1
		for i, c := range t.columns {
			if c.Long && !t.left[i] && widths[i] > leastWidth && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

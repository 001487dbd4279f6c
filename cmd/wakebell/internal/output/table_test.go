package output

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesAreAlignedEscapedAndFlushed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := NewTable(&out, Screen{}, Text("A"), Text("B"))
	table.Row("\x1b[31m", "")
	require.NoError(t, table.Flush())
	require.Equal(t, "A         B\n\\x1b[31m  -\n", out.String())
	for range heldRows {
		table.Row("x", "y")
	}
	require.Greater(t, strings.Count(out.String(), "\n"), heldRows/2, "rows of a long table are printed before its end")
	require.NoError(t, table.Flush())
}

// Columns stay aligned in a table of any length.
func TestLongTableIsAligned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := NewTable(&out, Screen{}, Text("NAME"), Numeric("N"), Text("LAST"))
	table.AtLeast([]string{"the longest of all names"})
	for i := range 3500 {
		name := "x"
		if i == 3000 {
			name = "the longest of all names"
		}
		table.Row(name, strconv.Itoa(1000+i), "end")
	}
	require.NoError(t, table.Flush())
	columns := map[int]bool{}
	for line := range strings.Lines(out.String()) {
		if line[:4] != "NAME" {
			columns[strings.Index(line, "end")] = true
		}
	}
	require.Len(t, columns, 1)
}

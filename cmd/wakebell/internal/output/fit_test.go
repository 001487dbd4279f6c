package output

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// A table on a terminal cuts text and leaves out minor columns before others; it says
// which.
func TestTableFitsTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 4)
	table := func(columns int) string {
		var out bytes.Buffer
		table := NewTable(&out, Screen{Columns: columns}, Text("ID"), Numeric("N"), Short("DUE").AsMinor(), Text("REASON"), Text("FAULT").AsRare())
		table.Row(long, "7", "in 3 h", "because of 蒼蒼蒼", "")
		table.Row("b", "12", "", "x", "")
		require.NoError(t, table.Flush())
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, ansi.StringWidth(line), columns, line)
		}
		return out.String()
	}
	require.Equal(t, strings.Join([]string{
		"ID                                         N  DUE     REASON",
		long + "   7  in 3 h  because of 蒼蒼蒼",
		"b                                         12  -       x",
		"",
	}, "\n"), table(80))
	require.Equal(t, strings.Join([]string{
		"ID                             N  DUE     REASON",
		"012345678901234567890123456…   7  in 3 h  because of 蒼蒼蒼",
		"b                             12  -       x",
		"",
	}, "\n"), table(59))
	require.Equal(t, strings.Join([]string{
		"ID          N  REASON",
		"01234567…   7  because …",
		"b          12  x",
		"the terminal is too nar…",
		"",
	}, "\n"), table(24))
	require.Contains(t, table(50), "the terminal is too narrow for DUE\n")
}

func TestStylesAreShownWithColourOnly(t *testing.T) {
	t.Parallel()
	for colour, want := range map[bool]string{
		false: "GRADE\nbad\n",
		true:  "\x1b[1mGRADE\x1b[m\n\x1b[31mbad\x1b[m\n",
	} {
		var out bytes.Buffer
		table := NewTable(&out, Screen{Color: colour}, Short("GRADE").Styled(Bad))
		table.Row("bad")
		require.NoError(t, table.Flush())
		require.Equal(t, want, out.String())
	}
}

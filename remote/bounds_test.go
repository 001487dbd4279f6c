package remote

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// boundsTable is the table of docs/remote.md.
func boundsTable() string {
	number := func(n int) string {
		switch {
		case n == 0:
			return "–"
		case n >= 1<<20 && n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n >= 1<<10 && n%(1<<10) == 0 && n >= 64<<10:
			return fmt.Sprintf("%d KiB", n>>10)
		default:
			return fmt.Sprint(n)
		}
	}
	var table strings.Builder
	for _, b := range limits.Table(DefaultMaxConnections, DefaultMaxMessage) {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", b.Name+b.Note, number(b.Principal), number(b.Host), number(b.Total))
	}
	return table.String()
}

func TestTableOfBoundsIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/remote.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| resource | per principal | per host | in total |\n|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	require.Equal(t, boundsTable(), table+"\n")
}

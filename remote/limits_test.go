package remote

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// boundsTable is the table of docs/remote.md.
func boundsTable() string {
	number := func(n int64) string {
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
	for _, b := range bounds {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", b.name, number(b.principal), number(b.host), number(b.total))
	}
	return table.String()
}

func TestTheTableOfBoundsIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/remote.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| resource | per principal | per host | in total |\n|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	require.Equal(t, boundsTable(), table+"\n")
}

func TestSharesAreBounded(t *testing.T) {
	t.Parallel()
	s := newShares(bound{"places", 2, 3, 4})
	require.NoError(t, s.take("a", "h", 2))
	require.EqualError(t, s.take("a", "g", 1), "too many places of this principal")
	require.NoError(t, s.take("b", "h", 1))
	require.EqualError(t, s.take("c", "h", 1), "too many places of this host")
	require.NoError(t, s.take("c", "g", 1))
	require.EqualError(t, s.take("d", "i", 1), "too many places")
	s.give("a", "h", 2)
	s.give("b", "h", 1)
	s.give("c", "g", 1)
	require.Empty(t, s.used, "nothing is kept of those that hold nothing")
	require.Zero(t, s.all)
}

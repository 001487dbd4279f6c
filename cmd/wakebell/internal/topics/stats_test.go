package topics

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A refresh with more topics than rows of the terminal keeps the header visible.
func TestRefreshFitsScreen(t *testing.T) {
	t.Parallel()
	lines := []byte("HEAD\n1\n2\n3\n4\n5\n")
	require.Equal(t, "HEAD\n1\n2\n3 more: name topics with --topic, or make the terminal larger\n", string(fit(slices.Clone(lines), 5, 80)))
	require.Equal(t, lines, fit(slices.Clone(lines), 7, 80))
	require.Equal(t, lines, fit(slices.Clone(lines), 0, 0), "the terminal size is unknown")
	wide := []byte("HEAD\n" + strings.Repeat("x", 100) + "\n2\n3\n")
	require.Equal(t, "HEAD\n"+strings.Repeat("x", 100)+"\n2 more: name topics with --topic, or make the terminal larger\n", string(fit(wide, 5, 80)), "a long line takes two rows")
}

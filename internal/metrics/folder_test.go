package metrics

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A scrape fails for one label of invalid UTF-8, which the name of a topic of another
// program may have.
func TestLabelsAreValidUTF8(t *testing.T) {
	t.Parallel()
	f := newFolder(10, func(label string) string { return label })
	seen := map[string]bool{}
	for _, name := range []string{"a\xff", "a\xfe", "\xc3", "é", "a"} {
		label := f.of(name)
		require.True(t, utf8.ValidString(label), "%q", name)
		require.Equal(t, label, f.of(name))
		seen[label] = true
	}
	require.Len(t, seen, 5, "different names have different labels")
}

//go:build unix

package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var release = regexp.MustCompile(`^## \[(\d+\.\d+\.\d+)\] - (unreleased|\d{4}-\d\d-\d\d)$`)

// The changelog has a section for each version, only the first of which may be
// unreleased, and in it one section for each kind of change.
func TestTheChangelogHasSectionsByVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../CHANGELOG.md")
	require.NoError(t, err)
	var versions, kinds []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			found := release.FindStringSubmatch(line)
			require.NotNil(t, found, line)
			require.NotContains(t, versions, found[1])
			require.False(t, found[2] == "unreleased" && len(versions) > 0, "only the first section is unreleased: %s", line)
			versions, kinds = append(versions, found[1]), nil
		case strings.HasPrefix(line, "### "):
			kind := strings.TrimPrefix(line, "### ")
			require.Contains(t, []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, kind)
			require.False(t, slices.Contains(kinds, kind), "%s twice in %s", kind, versions[len(versions)-1])
			kinds = append(kinds, kind)
		}
	}
	require.NotEmpty(t, versions)
}

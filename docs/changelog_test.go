//go:build unix

package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var release = regexp.MustCompile(`^## \[(\d+\.\d+\.\d+)\] - (not tagged yet|\d{4}-\d\d-\d\d)$`)

// The changelog has a section for what is not released, and then one for each version,
// only the newest of which may be without a tag.
func TestChangelogHasSectionsByVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../CHANGELOG.md")
	require.NoError(t, err)
	var sections, versions []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "## ") {
			sections = append(sections, line)
		}
	}
	require.Equal(t, "## [Unreleased]", sections[0])
	for i, section := range sections[1:] {
		found := release.FindStringSubmatch(section)
		require.NotNil(t, found, section)
		require.NotContains(t, versions, found[1])
		require.False(t, found[2] == "not tagged yet" && i > 0, "an older version without a tag: %s", section)
		versions = append(versions, found[1])
	}
	require.NotEmpty(t, versions)
}

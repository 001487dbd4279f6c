//go:build unix

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// link matches a relative link of markdown: its path, empty for the same page, and its
// anchor.
var link = regexp.MustCompile(`\]\(([^):#"]*)(?:#([^)]*))?\)`)

func TestLinksHaveTargets(t *testing.T) {
	t.Parallel()
	var found int
	for _, pattern := range []string{"../*.md", "*.md", "decisions/*.md", "guides/*.md", "../clients/*/README.md", "../deploy/*/*.md", "../examples/*.md", "../examples/*/*.md", "../bench/*.md", "../internal/faults/*.md"} {
		for _, name := range glob(t, pattern) {
			for _, m := range link.FindAllStringSubmatch(prose(t, name), -1) {
				found++
				target := name
				if m[1] != "" {
					target = filepath.Join(filepath.Dir(name), m[1])
				}
				_, err := os.Stat(target)
				require.NoError(t, err, "in %s", name)
				if m[2] != "" && filepath.Ext(target) == ".md" {
					require.Contains(t, anchors(t, target), m[2], "in %s, to %s", name, target)
				}
			}
		}
	}
	require.NotZero(t, found)
}

// The site makes its sidebar from the index.
func TestIndexHasAllPages(t *testing.T) {
	t.Parallel()
	index := prose(t, "README.md")
	for _, name := range append(glob(t, "*.md"), append(glob(t, "guides/*.md"), glob(t, "decisions/*.md")...)...) {
		if name != "README.md" {
			require.Contains(t, index, "]("+name+")")
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return names
}

// prose returns a document without its blocks of code.
func prose(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	parts := strings.Split("\n"+string(text), "\n"+fence)
	var kept strings.Builder
	for i := 0; i < len(parts); i += 2 { // every second part is code
		kept.WriteString(parts[i] + "\n")
	}
	return kept.String()
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\pL\pN _-]`)
)

// anchors returns the anchors that GitHub gives to the headings of a document.
func anchors(t *testing.T, name string) (all []string) {
	t.Helper()
	for _, m := range heading.FindAllStringSubmatch(prose(t, name), -1) {
		anchor := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}

// The README is read before anything is known: it says what Wakebell is and where to
// read on. Tables of features, limits and folders belong to the pages.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(strings.Fields(string(text))), 1600, "words")
}

// Each thing is said once, in the page where its reader looks for it; other pages link.
// Tables of single runs are beside the programs that print them.
func TestDocumentationIsShort(t *testing.T) {
	t.Parallel()
	var words int
	for _, pattern := range []string{"*.md", "decisions/*.md", "guides/*.md"} {
		for _, name := range glob(t, pattern) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			words += len(strings.Fields(string(text)))
		}
	}
	require.LessOrEqual(t, words, 80_000, "words")
}

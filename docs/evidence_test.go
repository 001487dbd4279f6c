package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEvidenceExists checks that the tests, scenarios, invariants and clauses that the page of
// evidence and the list of defects name are there, and that the table of mutants has all.
func TestEvidenceExists(t *testing.T) {
	t.Parallel()
	tests, harness, simulation := sources(t, "..", "_test.go"), sources(t, "../internal/faults", ".go"), sources(t, "../internal/simulate", ".go")
	clauses, err := os.ReadFile("spec.md")
	require.NoError(t, err)
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for _, line := range strings.Split(read(t, "evidence.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 7 || strings.HasPrefix(line, "|---") || strings.Contains(line, "| scenario |") {
			continue
		}
		rows++
		for i, in := range map[int]struct{ text, before, after string }{
			2: {tests, "func ", "("}, 3: {harness, `"`, `"`}, 4: {simulation, `broken("`, `"`},
		} {
			for _, m := range quoted.FindAllStringSubmatch(cells[i], -1) {
				require.Contains(t, in.text, in.before+m[1]+in.after, line)
			}
		}
		for word := range strings.SplitSeq(cells[5], ",") {
			word = strings.TrimSpace(word)
			if word != "" && !strings.ContainsAny(word, "0123456789") {
				require.Regexp(t, `(?m)^\| ([a-z ]+, )?`+word+`(, [a-z ]+)? \|`, string(clauses), line)
			}
		}
	}
	require.Greater(t, rows, 12)
	results := read(t, "../internal/simulate/RESULTS.md")
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(results, -1) {
		require.Contains(t, tests, "func "+name[1]+"(", "in the list of defects")
	}
	mutants, err := filepath.Glob("../internal/faults/testdata/mutants/*.patch")
	require.NoError(t, err)
	for _, patch := range mutants {
		require.Contains(t, results, "\n| "+strings.TrimSuffix(filepath.Base(patch), ".patch")+" | ", "the table of mutants")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// sources returns the text of all files of a folder with an ending.
func sources(t *testing.T, folder, ending string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ending) {
			all.WriteString(read(t, name))
		}
		return err
	}))
	return all.String()
}

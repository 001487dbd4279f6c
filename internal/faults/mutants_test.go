package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMutantsApply checks that the patches of make faults-mutants, which takes half an
// hour, still fit the tree, and name scenarios that exist.
func TestMutantsApply(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range slices.Concat(scenarios, simulated) {
		names[s.name] = true
	}
	patches, err := filepath.Glob("testdata/mutants/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, patches)
	for _, name := range patches {
		patch, err := os.ReadFile(name)
		require.NoError(t, err)
		requireCheck(t, name, string(patch), names)
		require.NotEmpty(t, field(string(patch), "What: "), name)
		requireFits(t, name, string(patch))
	}
}

// requireCheck checks that a patch names what must detect it, and that this exists: scenarios,
// runs of the model, or tests of a package.
func requireCheck(t *testing.T, name, patch string, scenarios map[string]bool) {
	t.Helper()
	chosen, runs, tests := field(patch, "Scenarios: "), field(patch, "Model: "), field(patch, "Tests: ")
	require.NotEmpty(t, chosen+runs+tests+field(patch, "Simulation: "), "%s: want Scenarios, Model, Simulation or Tests", name)
	for _, scenario := range strings.Fields(chosen) {
		require.Contains(t, scenarios, scenario, name)
	}
	if runs != "" {
		n, err := strconv.Atoi(runs)
		require.NoError(t, err, name)
		require.Positive(t, n, name)
	}
	if tests == "" {
		return
	}
	folder, pattern, _ := strings.Cut(tests, " ")
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	require.NoError(t, err)
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found = found || strings.Contains(string(text), "func "+pattern)
	}
	require.True(t, found, "%s: no test of %s begins with %s", name, folder, pattern)
}

// field returns the value of a field in the header of a patch; empty: it has none.
func field(patch, name string) string {
	_, rest, _ := strings.Cut("\n"+patch, "\n"+name)
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// requireFits checks that the files have what each hunk of a patch replaces.
func requireFits(t *testing.T, name, patch string) {
	t.Helper()
	hunks := strings.Split(patch, "\n@@ ")
	require.Greater(t, len(hunks), 1, "%s has no hunk", name)
	file := fileIn(hunks[0])
	for _, hunk := range hunks[1:] {
		replaced, before, after := "", 0, 0
		for _, line := range strings.Split(hunk, "\n")[1:] {
			if strings.HasPrefix(line, "diff ") { // of the next file
				break
			}
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "-") {
				replaced += line[1:] + "\n"
				before++
			}
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "+") {
				after++
			}
		}
		var from, lines, to, changed int
		_, err := fmt.Sscanf(hunk, "-%d,%d +%d,%d @@", &from, &lines, &to, &changed)
		require.NoError(t, err, name)
		require.Equal(t, [2]int{lines, changed}, [2]int{before, after}, "%s: lines of the hunk at %d", name, from)
		content, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err, name)
		require.Contains(t, string(content), replaced, "%s does not fit %s", name, file)
		if next := fileIn(hunk); next != "" {
			file = next
		}
	}
}

// fileIn returns the file that a part of a patch names for the hunk after it; empty: the
// same as before.
func fileIn(part string) string {
	_, rest, _ := strings.Cut(part, "\n--- a/")
	file, _, _ := strings.Cut(rest, "\n")
	return file
}

// Package baseline compares what the project promises not to change with stored
// listings: docs/compatibility.md. `make baseline` writes them.
package baseline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Variable is the environment variable that makes Require write the listings.
const Variable = "WAKEBELL_BASELINE"

// Require fails the test if the lines differ from those of the file, which is in
// testdata. It sorts them first. A line that is gone means that a user's program may
// break.
func Require(t *testing.T, file string, lines []string) {
	t.Helper()
	lines = slices.Compact(slices.Sorted(slices.Values(lines)))
	path := filepath.Join("testdata", filepath.FromSlash(file))
	if os.Getenv(Variable) == "write" {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read the baseline: %v; `make baseline` writes it", err)
	}
	gone, added := Compare(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), lines)
	for _, line := range gone {
		t.Errorf("%s: removed or changed: %s", file, line)
	}
	for _, line := range added {
		t.Errorf("%s: not in the baseline: %s", file, line)
	}
	if len(gone) > 0 {
		t.Errorf("%s: this breaks programs that use it; see docs/compatibility.md before you run `make baseline`", file)
	} else if len(added) > 0 {
		t.Errorf("%s: run `make baseline`, and commit the difference if the additions are meant", file)
	}
}

// Compare returns the lines of want that got lacks, and those of got that want lacks.
func Compare(want, got []string) (gone, added []string) {
	for _, line := range want {
		if !slices.Contains(got, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			added = append(added, line)
		}
	}
	return gone, added
}

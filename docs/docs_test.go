//go:build unix

// Package docs_test follows the documents: it writes the files that they show, runs
// their commands with the program and a real redis-server, and compares the output.
// "go test ./docs -update" writes the present output into the documents; read the
// difference.
package docs_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

var update = flag.Bool("update", false, "write the documents' outputs")

func TestMain(m *testing.M) { redistest.Main(m) }

// program builds the command line into a new directory.
func program(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "../cmd/wakebell").CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

func TestDocumentsShowTheRealOutput(t *testing.T) {
	t.Parallel()
	bin := program(t)
	checkout, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, name := range []string{"start.md", "operations.md", "guides/capacity.md", "guides/migrate.md", "guides/security.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			d, err := parse(string(text))
			require.NoError(t, err)
			server := redistest.Start(t, "--appendonly", "yes")
			dir := t.TempDir()
			w := &walk{
				t: t, dir: dir, update: *update,
				shell: newShell(t, dir,
					"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
					"CHECKOUT="+checkout,
					// The module cache has all dependencies, so nothing is
					// downloaded.
					"GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off"),
				standIns: standIns,
				names:    map[string]string{"127.0.0.1:6379": server.Addr, "127.0.0.1:7070": redistest.Address(t)},
			}
			after := w.through(d)
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(after), 0o600))
			}
		})
	}
}

// standIns replaces commands that download this module with commands that use the
// checkout.
var standIns = map[string]string{
	"go install github.com/wakebell/wakebell/cmd/wakebell@latest": "true",
	"go get github.com/wakebell/wakebell@latest": `
		sed "s,^module .*,$(grep ^module go.mod)," "$CHECKOUT/go.mod" >mod && mv mod go.mod &&
		cp "$CHECKOUT/go.sum" . &&
		go mod edit -require=github.com/wakebell/wakebell@v0.0.0 -replace=github.com/wakebell/wakebell="$CHECKOUT"`,
}

// link matches a relative link of markdown, without its anchor.
var link = regexp.MustCompile(`\]\(([^):#"]+)(#[^)]*)?\)`)

func TestLinksHaveTargets(t *testing.T) {
	t.Parallel()
	var found int
	for _, pattern := range []string{"../*.md", "*.md", "decisions/*.md", "guides/*.md", "../deploy/*/*.md", "../examples/*.md", "../examples/*/*.md"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				found++
				_, err := os.Stat(filepath.Join(filepath.Dir(name), m[1]))
				require.NoError(t, err, "in %s", name)
			}
		}
	}
	require.NotZero(t, found)
}

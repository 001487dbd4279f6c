//go:build unix

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmesProgramBuilds pastes the program of the README into a module of its own, as a
// reader does with a clone.
func TestReadmesProgramBuilds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, program, found := strings.Cut(string(text), "```go\npackage main\n")
	require.True(t, found)
	program, _, found = strings.Cut(program, "\n```\n")
	require.True(t, found)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"+program+"\n"), 0o600))
	checkout, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, command := range [][]string{
		{"mod", "init", "example.org/readme"},
		{"mod", "edit", "-replace", "github.com/wakebell/wakebell=" + checkout},
		{"get", "github.com/wakebell/wakebell"},
		{"vet", "."},
		{"build", "-o", os.DevNull, "."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", command...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off") // nothing is downloaded
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s: %s", strings.Join(command, " "), out)
	}
}

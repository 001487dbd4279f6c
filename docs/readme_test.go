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
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", "go mod init example.org/readme\n"+getModule+"\ngo vet .\ngo build -o /dev/null .")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHECKOUT="+checkout, "GOPROXY=off", "GOFLAGS=", "GOWORK=off") // nothing is downloaded
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

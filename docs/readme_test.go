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

// TestExamplesBuildWhereTheyAreCopiedTo copies the programs of the examples into a module
// of their own: one that imports an internal package would build only here.
func TestExamplesBuildWhereTheyAreCopiedTo(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("../examples/*/*.go")
	require.NoError(t, err)
	dir, copied := t.TempDir(), map[string]bool{}
	for _, program := range programs {
		name := filepath.Base(filepath.Dir(program))
		if strings.HasSuffix(program, "_test.go") || name == "tryout" {
			continue
		}
		text, err := os.ReadFile(program)
		require.NoError(t, err)
		require.NotContains(t, string(text), "/internal/", program)
		if _, err := os.Stat(filepath.Join(filepath.Dir(program), "go.mod")); err == nil {
			continue // the modules that it needs beside ours are not here
		}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, filepath.Base(program)), text, 0o600))
		copied[name] = true
	}
	require.Greater(t, len(copied), 10)
	checkout, err := filepath.Abs("..")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", "go mod init example.org/copied\n"+getModule+"\ncp \"$CHECKOUT/go.sum\" .\ngo vet ./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHECKOUT="+checkout, "GOPROXY=off", "GOFLAGS=", "GOWORK=off") // nothing is downloaded
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

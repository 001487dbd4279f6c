package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

func TestManPages(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	b.fine("man", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "wakebell*.1"))
	require.NoError(t, err)
	require.Greater(t, len(pages), len(clitest.Leaves(newRoot(&cli.App{}))))
	page, err := os.ReadFile(filepath.Join(dir, "wakebell-dead-ls.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), "limit")

	again := t.TempDir()
	b.fine("man", again)
	same, err := os.ReadFile(filepath.Join(again, "wakebell-dead-ls.1"))
	require.NoError(t, err)
	require.Equal(t, string(page), string(same), "pages have no date of their own")

	code, _, stderr := b.call("man", filepath.Join(dir, "missing"))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "no such file")
}
